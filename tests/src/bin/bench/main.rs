//! Figures of one machine in one run, with the ratios that can be compared across machines. Run it by
//! `just bench`: it wants an optimised build and a machine that does nothing else.
//!
//! Every figure is the median of [`figures::ROUNDS`] rounds. Where one has an aim, it says whether the aim is
//! met; nothing fails when it is not, since the machine may be busy or slow.

mod bare;
mod code;
mod durable;
mod figures;
mod held;
mod instance;
mod memory;
mod spinners;
mod survive;
mod wasi;

use anyhow::{Result, bail};

/// One part of the bench, by the name under which it can be run alone.
const PARTS: [&str; 8] = [
    "instance", "wasi", "held", "durable", "survive", "spinners", "memory", "code",
];

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if(|first| first == "bare").is_some() {
        return bare::serve(&arguments.next().unwrap_or_default()).await;
    }
    let mut asked: Vec<String> = arguments.collect();
    if asked.is_empty() {
        asked = PARTS.map(str::to_owned).to_vec();
    }
    figures::machine()?;
    for part in asked {
        match part.as_str() {
            "instance" => instance::measure().await?,
            "wasi" => wasi::measure().await?,
            "held" => held::measure().await?,
            "durable" => durable::measure().await?,
            "survive" => survive::measure().await?,
            "spinners" => spinners::measure().await?,
            "memory" => memory::measure().await?,
            "code" => code::measure().await?,
            other => bail!("no part {other}: there are {}", PARTS.join(", ")),
        }
    }
    Ok(())
}
