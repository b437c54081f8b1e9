//! Limits that are lowered to those of another machine.

use longshore_policy::limits::Limits;

#[test]
fn what_is_above_another_ones_limits_is_lowered_and_named() {
    let here = Limits::default();
    let (limits, keys) = here.capped(&here);
    assert_eq!(limits, here);
    assert!(keys.is_empty());
    let then = Limits {
        memory_bytes: here.memory_bytes + 1,
        cpu_ms: here.cpu_ms - 1,
        journal_bytes: u64::MAX,
        ..Limits::default()
    };
    let (limits, keys) = then.capped(&here);
    let less = Limits {
        cpu_ms: then.cpu_ms,
        ..here
    };
    assert_eq!(limits, less);
    assert_eq!(keys, ["limits.memory_mib", "limits.journal_mib"]);
}
