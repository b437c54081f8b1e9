//! The layers of settings, put together: what is in force, and where each of it came from.
//!
//! A value comes from the layer nearest to the person: option, then variable, then file, then default.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::data;
use crate::env;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::file::SettingsFile;
use crate::output;
use crate::settings::{KEYS, Numbers};
use longshore_server::policy::nearest::nearest;

/// The keys that are no numbers: where a server listens, and where it finds components.
const LISTEN: &str = "listen";
const COMPONENTS_DIR: &str = "components.dir";
/// Where it listens if nobody says: where clients look for it.
pub(crate) const LISTEN_DEFAULT: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8383);

/// What every command that runs guests can be told.
#[derive(clap::Args)]
pub(crate) struct Told {
    /// The data directory [default: $XDG_DATA_HOME/longshore]
    #[arg(long, env = env::DATA, value_name = "DIR")]
    data: Option<PathBuf>,
    /// A settings file, in TOML [default: longshore.toml in the data directory, if it is there]
    #[arg(long, env = env::CONFIG, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A setting; `longshore serve --help` lists them
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl Told {
    /// The settings in force, with those of a command that has options of its own for some.
    pub(crate) fn config(&self, options: Options) -> Result<Config, Failure> {
        let file = SettingsFile::find(self.config.as_deref(), &self.data()?);
        file.and_then(|file| Config::resolve(file.as_ref(), env::text, &self.set, options))
            .map_err(|fault| Failure::new(Exit::Usage, fault))
    }

    /// The settings file that was named.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    /// The data directory. Nothing is looked at or made yet.
    pub(crate) fn data(&self) -> Result<PathBuf, Failure> {
        self.data
            .clone()
            .map_or_else(data::default_dir, Ok)
            .or_exit(Exit::Usage)
    }
}

/// Settings that have an option of their own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) components_dir: Option<PathBuf>,
}

/// Where to listen, as people write it.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    // It may mean several addresses, and is meant for this one.
    let numeric = text.strip_prefix("localhost:").map_or_else(
        || text.to_owned(),
        |port| format!("{}:{port}", Ipv4Addr::LOCALHOST),
    );
    numeric.parse().map_err(|_| {
        format!(
            "must be an address with a port, like 127.0.0.1:8383 or localhost:8383 (port 0 is any free one), and {text:?} is not"
        )
    })
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Default,
    File(String),
    Variable(String),
    /// The name of the option.
    Option(&'static str),
}

impl Source {
    fn as_text(&self) -> &str {
        match self {
            Self::Default => "default",
            Self::File(name) | Self::Variable(name) => name,
            Self::Option(name) => name,
        }
    }
}

/// What is in force, and where each of it came from.
#[derive(Debug)]
pub(crate) struct Config {
    /// The numbers.
    pub(crate) numbers: Numbers,
    /// Where a server listens.
    pub(crate) listen: SocketAddr,
    listen_source: Source,
    /// Where a server finds components; empty for nowhere.
    pub(crate) components_dir: PathBuf,
    components_dir_source: Source,
    /// One for each of [`KEYS`].
    sources: Vec<Source>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            numbers: Numbers::default(),
            listen: LISTEN_DEFAULT,
            listen_source: Source::Default,
            components_dir: PathBuf::new(),
            components_dir_source: Source::Default,
            sources: vec![Source::Default; KEYS.len()],
        }
    }
}

impl Config {
    /// All layers, each over the one before it.
    pub(crate) fn resolve(
        file: Option<&SettingsFile>,
        variable: impl Fn(&str) -> Result<Option<String>, String>,
        set: &[String],
        options: Options,
    ) -> Result<Self, String> {
        let mut config = Self::default();
        if let Some(file) = file {
            config.take_file(file)?;
        }
        for (key, name) in [(LISTEN, env::LISTEN), (COMPONENTS_DIR, env::COMPONENTS_DIR)] {
            if let Some(text) = variable(name)? {
                config
                    .set(key, &text, Source::Variable(name.to_owned()))
                    .map_err(|fault| format!("{name} {fault}"))?;
            }
        }
        for key in KEYS {
            let name = key.variable();
            if let Some(text) = variable(&name)? {
                config
                    .set(key.name, &text, Source::Variable(name.clone()))
                    .map_err(|fault| format!("{name} {fault}"))?;
            }
        }
        for option in set {
            let (name, text) = option
                .split_once('=')
                .ok_or_else(|| format!("--set {option} has no value: write --set KEY=VALUE"))?;
            config
                .set(name, text, Source::Option("--set"))
                .map_err(|fault| format!("--set {name} {fault}"))?;
        }
        if let Some(listen) = options.listen {
            config.listen = listen;
            config.listen_source = Source::Option("--listen");
        }
        if let Some(dir) = options.components_dir {
            config.components_dir = dir;
            config.components_dir_source = Source::Option("--components-dir");
        }
        Ok(config)
    }

    fn take_file(&mut self, file: &SettingsFile) -> Result<(), String> {
        let shown = file.path.display().to_string();
        for (key, value) in &file.values {
            let source = Source::File(shown.clone());
            let set = match (key.as_str(), value) {
                (LISTEN | COMPONENTS_DIR, toml::Value::String(text)) => self.set(key, text, source),
                (COMPONENTS_DIR, _) => Err("must be a path in quotes".to_owned()),
                (LISTEN, _) => Err("must be an address in quotes, like \"127.0.0.1:8383\"".to_owned()),
                // The file is looked for in that directory.
                ("data", _) => Err("cannot stand in a settings file: name the data directory with --data or LONGSHORE_DATA".to_owned()),
                (key, toml::Value::Integer(number)) => self.set(key, &number.to_string(), source),
                (key, toml::Value::Boolean(on)) => self.set(key, &on.to_string(), source),
                (key, other) => known(key).and_then(|index| {
                    let wanted = if KEYS[index].is_switch() {
                        "true or false"
                    } else {
                        "a whole number"
                    };
                    Err(format!("must be {wanted} without quotes, and {other} is not"))
                }),
            };
            set.map_err(|fault| format!("{shown}: {key} {fault}"))?;
        }
        Ok(())
    }

    fn set(&mut self, name: &str, text: &str, source: Source) -> Result<(), String> {
        match name {
            LISTEN => {
                self.listen = address(text)?;
                self.listen_source = source;
                return Ok(());
            }
            COMPONENTS_DIR => {
                self.components_dir = PathBuf::from(text);
                self.components_dir_source = source;
                return Ok(());
            }
            _ => {}
        }
        let index = known(name)?;
        KEYS[index].set(&mut self.numbers, text)?;
        self.sources[index] = source;
        Ok(())
    }

    /// For people, in the form of a settings file.
    pub(crate) fn to_text(&self) -> String {
        let mut numbers = self.numbers.clone();
        let mut section = "";
        let commented = |setting: String, source: &Source| {
            // A path can hold anything, and a comment ends with its line.
            format!("{setting:<32} # {}", output::line(source.as_text()))
        };
        let listen = format!("{LISTEN} = \"{}\"", self.listen);
        let mut lines = vec![commented(listen, &self.listen_source)];
        for (key, source) in KEYS.iter().zip(&self.sources) {
            let (of, name) = key.name.split_once('.').unwrap_or(("", key.name));
            if of != section {
                section = of;
                lines.push(format!("\n[{section}]"));
                if COMPONENTS_DIR.starts_with(section) {
                    let dir =
                        toml::Value::String(self.components_dir.to_string_lossy().into_owned());
                    lines.push(commented(
                        format!("dir = {dir}"),
                        &self.components_dir_source,
                    ));
                }
            }
            let setting = format!("{name} = {}", key.value(&mut numbers));
            lines.push(commented(setting, source));
        }
        lines.join("\n")
    }

    /// For programs.
    pub(crate) fn to_json(&self) -> Value {
        let mut numbers = self.numbers.clone();
        let mut settings: serde_json::Map<String, Value> = KEYS
            .iter()
            .zip(&self.sources)
            .map(|(key, source)| {
                (
                    key.name.to_owned(),
                    json!({ "value": key.value(&mut numbers), "source": source.as_text() }),
                )
            })
            .collect();
        settings.insert(
            LISTEN.to_owned(),
            json!({ "value": self.listen, "source": self.listen_source.as_text() }),
        );
        settings.insert(
            COMPONENTS_DIR.to_owned(),
            json!({
                "value": self.components_dir.to_string_lossy(),
                "source": self.components_dir_source.as_text(),
            }),
        );
        Value::Object(settings)
    }
}

/// Which of [`KEYS`] is meant.
fn known(name: &str) -> Result<usize, String> {
    KEYS.iter().position(|key| key.name == name).ok_or_else(|| {
        let names = KEYS
            .iter()
            .map(|key| key.name)
            .chain([LISTEN, COMPONENTS_DIR]);
        let meant = nearest(name, names).map_or_else(
            || "`longshore serve --print-config` lists what there is".to_owned(),
            |near| format!("is {near} meant?"),
        );
        format!("is not known: {meant}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(_: &str) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn options(list: &[&str]) -> Result<Config, String> {
        let list: Vec<String> = list.iter().map(|&option| option.to_owned()).collect();
        Config::resolve(None, none, &list, Options::default())
    }

    #[test]
    fn the_option_beats_the_variable_and_says_so() {
        let variable = |name: &str| {
            Ok(match name {
                "LONGSHORE_GRACE_MS" => Some("5".to_owned()),
                "LONGSHORE_LIMITS_MEMORY_MIB" => Some("16".to_owned()),
                _ => None,
            })
        };
        let config = Config::resolve(
            None,
            variable,
            &["grace_ms=7".to_owned()],
            Options::default(),
        )
        .unwrap();
        assert_eq!(config.numbers.server.grace_ms, 7);
        assert_eq!(config.numbers.server.limits.memory_bytes, 16 << 20);
        let shown = config.to_json();
        assert_eq!(shown["grace_ms"], json!({ "value": 7, "source": "--set" }));
        assert_eq!(
            shown["limits.memory_mib"],
            json!({ "value": 16, "source": "LONGSHORE_LIMITS_MEMORY_MIB" })
        );
        assert_eq!(shown["running"]["source"], "default");
        let text = config.to_text();
        assert!(
            text.contains("\ngrace_ms = 7 ") && text.contains("\n[limits]\nmemory_mib = 16 "),
            "{text}"
        );
    }

    #[test]
    fn what_cannot_be_set_is_named() {
        let rows = [
            ("grace_ms", "no value"),
            ("grace=1", "is grace_ms meant?"),
            ("limits.cpu_s=1", "is limits.cpu_ms meant?"),
            ("colour=1", "--print-config"),
            ("grace_ms=-1", "whole number from 0 to"),
            ("grace_ms=1.5", "\"1.5\""),
            ("connections=0", "from 1 to 1000000"),
            ("limits.memory_mib=257", "from 1 to 256,"),
            ("limits.memory_mib=0", "nothing could be served"),
            ("durable=1", "true or false"),
        ];
        for (option, expected) in rows {
            let fault = options(&[option]).unwrap_err();
            assert!(fault.contains(expected), "{option}: {fault}");
        }
        let bad = Config::resolve(
            None,
            |_| Ok(Some("much".to_owned())),
            &[],
            Options::default(),
        )
        .unwrap_err();
        assert!(bad.starts_with("LONGSHORE_LISTEN must be"), "{bad}");
    }

    fn file(text: &str) -> SettingsFile {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.toml");
        std::fs::write(&path, text).unwrap();
        SettingsFile::find(Some(&path), folder.path())
            .unwrap()
            .unwrap()
    }

    #[test]
    fn each_key_comes_from_the_nearest_layer() {
        let file = file(
            "listen = \"127.0.0.1:1\"\ngrace_ms = 1\nqueued = 1\nrunning = 1\n[limits]\ncpu_ms = 1\n",
        );
        let variable = |name: &str| {
            Ok(match name {
                "LONGSHORE_GRACE_MS" | "LONGSHORE_QUEUED" => Some("2".to_owned()),
                "LONGSHORE_LISTEN" => Some("127.0.0.1:2".to_owned()),
                _ => None,
            })
        };
        let listen = Options {
            listen: Some("127.0.0.1:3".parse().unwrap()),
            ..Options::default()
        };
        let config =
            Config::resolve(Some(&file), variable, &["grace_ms=3".to_owned()], listen).unwrap();
        let shown = config.to_json();
        let path = file.path.display().to_string();
        let rows = [
            ("listen", json!("127.0.0.1:3"), "--listen"),
            ("grace_ms", json!(3), "--set"),
            ("queued", json!(2), "LONGSHORE_QUEUED"),
            ("running", json!(1), path.as_str()),
            ("limits.cpu_ms", json!(1), path.as_str()),
            ("page", json!(100), "default"),
        ];
        for (key, value, source) in rows {
            assert_eq!(shown[key], json!({ "value": value, "source": source }));
        }
        let config = Config::resolve(Some(&file), none, &[], Options::default()).unwrap();
        assert_eq!(config.listen.port(), 1);
    }

    #[test]
    fn addresses_are_numbers_or_this_machine() {
        for (text, expected) in [
            ("127.0.0.1:1", Some("127.0.0.1:1")),
            ("localhost:2", Some("127.0.0.1:2")),
            ("[::1]:3", Some("[::1]:3")),
            ("localhost", None),
            ("127.0.0.1", None),
            ("localhost.example:1", None),
            ("8383", None),
        ] {
            let got = address(text).map(|address| address.to_string());
            assert_eq!(got.as_deref().ok(), expected, "{text}");
            assert!(got.is_ok() || got.unwrap_err().contains("localhost:8383"));
        }
    }

    #[test]
    fn what_is_printed_is_a_settings_file() {
        let printed = options(&[
            "grace_ms=7",
            "limits.cpu_ms=8",
            "listen=127.0.0.1:9",
            "durable=false",
            "components.dir=/a \"b\"",
        ])
        .unwrap()
        .to_text();
        let again = Config::resolve(Some(&file(&printed)), none, &[], Options::default()).unwrap();
        assert_eq!(again.numbers.server.grace_ms, 7);
        assert_eq!(again.numbers.server.limits.cpu_ms, 8);
        assert_eq!(again.listen.port(), 9);
        assert_eq!(again.components_dir, std::path::Path::new("/a \"b\""));
        assert!(!again.numbers.server.durable);
    }

    #[test]
    fn a_file_is_held_to_the_same_rules() {
        let rows = [
            ("grace = 1", "grace is not known: is grace_ms meant?"),
            ("lisen = \"x\"", "is listen meant?"),
            ("[limit]\ncpu_ms = 1", "is limits.cpu_ms meant?"),
            (
                "grace_ms = \"1\"",
                "grace_ms must be a whole number without quotes",
            ),
            ("grace_ms = 1.5", "without quotes"),
            ("grace_ms = true", "grace_ms must be a whole number"),
            ("durable = 1", "durable must be true or false"),
            (
                "durable = \"on\"",
                "durable must be true or false without quotes",
            ),
            (
                "connections = 0",
                "connections must be a whole number from 1",
            ),
            ("listen = 8383", "listen must be an address in quotes"),
            ("listen = \"here\"", "listen must be an address with a port"),
            ("data = \"d\"", "--data"),
        ];
        for (text, expected) in rows {
            let file = file(text);
            let fault = Config::resolve(Some(&file), none, &[], Options::default()).unwrap_err();
            assert!(
                fault.contains(expected) && fault.contains("s.toml"),
                "{text}: {fault}"
            );
        }
    }
}
