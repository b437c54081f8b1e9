// From text to bytes and back, which the engine has no functions of its own for.

/** A text as it is sent and printed. */
export function utf8(text: string): Uint8Array {
  // Each byte of UTF-8 that is not a plain letter is written as `%` and two digits.
  const letters = encodeURIComponent(text.toWellFormed());
  const bytes = letters.matchAll(/%(..)|[^%]/g);
  return Uint8Array.from(bytes, ([letter, digits]) => (digits ? parseInt(digits, 16) : letter.charCodeAt(0)));
}

/** How many bytes of six bits belong to a first one. */
function followers(first: number): number {
  if (first >= 0xc2 && first <= 0xdf) return 1;
  if (first >= 0xe0 && first <= 0xef) return 2;
  if (first >= 0xf0 && first <= 0xf4) return 3;
  return 0;
}

/** A text that was sent. What is no UTF-8 becomes `\uFFFD`. */
export function fromUtf8(bytes: Uint8Array): string {
  const pieces: string[] = [];
  let points: number[] = [];
  for (let at = 0; at < bytes.length; ) {
    const first = bytes[at]!;
    let point = first;
    let length = 1;
    if (first >= 0x80) {
      const more = followers(first);
      point = first & (0x3f >> more);
      for (; length <= more && (bytes[at + length]! & 0xc0) === 0x80; length++) {
        point = (point << 6) | (bytes[at + length]! & 0x3f);
      }
      // Cut off, longer than it had to be, half of a pair, or beyond all letters.
      const least = [0x110000, 0x80, 0x800, 0x10000][more]!;
      const is = length > more && point >= least && point <= 0x10ffff && !(point >= 0xd800 && point <= 0xdfff);
      if (!is) point = 0xfffd;
    }
    points.push(point);
    at += length;
    // As many as a function takes at once.
    if (points.length === 4096 || at >= bytes.length) {
      pieces.push(String.fromCodePoint(...points));
      points = [];
    }
  }
  return pieces.join("");
}
