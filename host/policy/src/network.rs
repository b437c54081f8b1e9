//! Networks by their prefix.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::authority::Malformed;

/// A network: an address and how many of its bits all its addresses share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

/// What is wider than this is no network that anybody names on purpose: the largest private ones.
const WIDEST_V4: u8 = 8;
const WIDEST_V6: u8 = 7;

impl Network {
    pub(crate) const fn v4(address: [u8; 4], prefix: u8) -> Self {
        let [a, b, c, d] = address;
        Self {
            address: IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
            prefix,
        }
    }

    pub(crate) const fn v6(address: [u16; 8], prefix: u8) -> Self {
        let [a, b, c, d, e, f, g, h] = address;
        Self {
            address: IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)),
            prefix,
        }
    }

    /// Whether that address lies in it.
    #[must_use]
    pub fn holds(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(net), IpAddr::V4(address)) => {
                let shift = 32 - u32::from(self.prefix);
                let differ = u32::from(net) ^ u32::from(address);
                differ.checked_shr(shift).unwrap_or(0) == 0
            }
            (IpAddr::V6(net), IpAddr::V6(address)) => {
                let shift = 128 - u32::from(self.prefix);
                let differ = u128::from(net) ^ u128::from(address);
                differ.checked_shr(shift).unwrap_or(0) == 0
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }

    /// The part of it that is zero in its address.
    fn has_loose_bits(&self) -> bool {
        match self.address {
            IpAddr::V4(net) => {
                u32::from(net)
                    .checked_shl(u32::from(self.prefix))
                    .unwrap_or(0)
                    != 0
            }
            IpAddr::V6(net) => {
                u128::from(net)
                    .checked_shl(u32::from(self.prefix))
                    .unwrap_or(0)
                    != 0
            }
        }
    }
}

impl FromStr for Network {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let refuse = |fault| Malformed::new(text, fault);
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address
            .parse()
            .map_err(|_| refuse("is no network: write it like 10.1.0.0/16 or fd12::/48"))?;
        let (widest, bits) = match address {
            IpAddr::V4(_) => (WIDEST_V4, 32),
            IpAddr::V6(_) => (WIDEST_V6, 128),
        };
        let prefix = match prefix.map(str::parse::<u8>) {
            None => bits,
            Some(Ok(prefix)) if prefix < widest => {
                return Err(refuse("is wider than any private network"));
            }
            Some(Ok(prefix)) if prefix <= bits => prefix,
            Some(_) => return Err(refuse("has no such prefix")),
        };
        let network = Self { address, prefix };
        if network.has_loose_bits() {
            return Err(refuse("has bits of an address behind its prefix"));
        }
        if let IpAddr::V6(address) = address
            && address.to_ipv4_mapped().is_some()
        {
            return Err(refuse("wraps an IPv4 network: name that one"));
        }
        Ok(network)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl TryFrom<String> for Network {
    type Error = Malformed;

    fn try_from(text: String) -> Result<Self, Malformed> {
        text.parse()
    }
}

impl From<Network> for String {
    fn from(network: Network) -> Self {
        network.to_string()
    }
}
