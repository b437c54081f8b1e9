//! The environment: read here and by the options that name a variable, and nowhere else.

use std::ffi::OsString;

use crate::settings;
use longshore_server::policy::nearest::nearest;

/// Every variable of ours begins so.
const PREFIX: &str = "LONGSHORE_";

pub(crate) const LISTEN: &str = "LONGSHORE_LISTEN";
pub(crate) const COMPONENTS_DIR: &str = "LONGSHORE_COMPONENTS_DIR";
pub(crate) const DATA: &str = "LONGSHORE_DATA";
pub(crate) const CONFIG: &str = "LONGSHORE_CONFIG";
pub(crate) const SERVER: &str = "LONGSHORE_SERVER";
pub(crate) const ADMIN_TOKEN: &str = "LONGSHORE_ADMIN_TOKEN";
pub(crate) const LOG: &str = "LONGSHORE_LOG";

const FIXED: [&str; 7] = [
    LISTEN,
    COMPONENTS_DIR,
    DATA,
    CONFIG,
    SERVER,
    ADMIN_TOKEN,
    LOG,
];

/// Refuses a variable of ours that nothing reads: whoever set it believes that it does something.
pub(crate) fn refuse_unknown(names: impl IntoIterator<Item = OsString>) -> Result<(), String> {
    let mut known: Vec<String> = FIXED.into_iter().map(str::to_owned).collect();
    known.extend(settings::KEYS.iter().map(settings::Key::variable));
    for name in names {
        let name = name.to_string_lossy();
        if !name.starts_with(PREFIX) || known.iter().any(|known| *known == name) {
            continue;
        }
        let meant = nearest(&name, known.iter().map(String::as_str))
            .map_or_else(String::new, |near| format!(" (is {near} meant?)"));
        return Err(format!(
            "the variable {name} is not known{meant}: correct its name, or unset it; `longshore serve --help` lists them"
        ));
    }
    Ok(())
}

/// The names of all variables.
pub(crate) fn names() -> impl Iterator<Item = OsString> {
    std::env::vars_os().map(|(name, _)| name)
}

/// A variable as text; none if it is not set.
pub(crate) fn text(name: &str) -> Result<Option<String>, String> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(text)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => Err(format!("the variable {name} is not UTF-8")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str) -> Result<(), String> {
        refuse_unknown(["PATH".into(), name.into()])
    }

    #[test]
    fn known_and_foreign_variables_pass() {
        for name in [
            "HOME",
            "LONGSHORE",
            "LONGSHORE_DATA",
            "LONGSHORE_GRACE_MS",
            "LONGSHORE_LIMITS_CPU_MS",
        ] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn an_unknown_one_is_refused_with_the_nearest() {
        let refusal = check("LONGSHORE_LISTN").unwrap_err();
        assert!(
            refusal.contains("LONGSHORE_LISTN ") && refusal.contains("is LONGSHORE_LISTEN meant?"),
            "{refusal}"
        );
        let refusal = check("LONGSHORE_LIMITS_CPU_S").unwrap_err();
        assert!(
            refusal.contains("is LONGSHORE_LIMITS_CPU_MS meant?"),
            "{refusal}"
        );
        let refusal = check("LONGSHORE_QQQQQQQQ").unwrap_err();
        assert!(refusal.contains("--help"), "{refusal}");
        assert!(check("LONGSHORE_data").is_err());
    }
}
