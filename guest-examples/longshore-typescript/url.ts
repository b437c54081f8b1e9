// URLs, as far as a request needs to know its own: the engine has none.

// What stands behind a `#` is for whoever asks.
const URL = /^(https?):\/\/([^/?#]+)(\/[^?#]*)?(?:\?([^#]*))?(?:#|$)/i;

/** Where a request goes, or what is wrong with its URL. */
export function parts(
  url: string,
  query: Record<string, string> = {},
): { scheme: "HTTP" | "HTTPS"; name: string; path: string } | string {
  const [, scheme, authority, path = "/", asked] = url.match(URL) ?? [];
  if (!scheme || !authority) return `${JSON.stringify(url)} is no URL: write it like https://example.org/path`;
  const name = authority.slice(authority.lastIndexOf("@") + 1);
  // Not shown: there may be a password in it.
  if (name !== authority) return `the URL of a request to ${name} may name no user: use a header`;
  const pairs = Object.entries(query).map((pair) => pair.map(encodeURIComponent).join("="));
  const all = [asked, ...pairs].filter(Boolean).join("&");
  return { scheme: scheme.toLowerCase() === "http" ? "HTTP" : "HTTPS", name, path: path + (all && `?${all}`) };
}
