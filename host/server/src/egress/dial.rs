//! Connections: to the address that was judged, and to no other.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use longshore_journal::http::Failure;
use longshore_policy::address::dialled;
use longshore_policy::authority::{Host, Scheme};
use longshore_sandbox::outside::Outgoing;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::client::TlsStream;

use super::Egress;

/// A connection to whoever a request is for.
pub(super) enum Connection {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Egress {
    pub(super) async fn connect(&self, outgoing: &Outgoing) -> Result<Connection, Failure> {
        let until = Instant::now() + Duration::from_millis(outgoing.bounds.connect_ms);
        let found = timeout_at(until, self.addresses(&outgoing.authority.host))
            .await
            .map_err(|_| Failure::DnsTimeout)??;
        let judged = self.judged(&found, outgoing)?;
        timeout_at(until, self.reach(&judged, outgoing))
            .await
            .map_err(|_| Failure::ConnectTimeout)?
    }

    async fn addresses(&self, host: &Host) -> Result<Vec<IpAddr>, Failure> {
        match host {
            Host::Address(address) => Ok(vec![*address]),
            Host::Name(name) => match self.resolver.resolve(name.as_str()).await {
                Ok(found) if !found.is_empty() => Ok(found),
                Ok(_) | Err(_) => Err(Failure::DnsError),
            },
        }
    }

    /// Those of the addresses that may be dialled.
    fn judged(&self, found: &[IpAddr], outgoing: &Outgoing) -> Result<Vec<SocketAddr>, Failure> {
        let own = self.own.lock().clone();
        let mut first_refused = None;
        let mut judged = Vec::with_capacity(found.len());
        for address in found {
            match dialled(*address, outgoing.authority.port, &outgoing.networks, &own) {
                Ok(address) => judged.push(address),
                Err(refused) => {
                    first_refused.get_or_insert(refused);
                }
            }
        }
        match first_refused {
            Some(refused) if judged.is_empty() => {
                Err(Failure::AddressProhibited(refused.to_string()))
            }
            _ => Ok(judged),
        }
    }

    /// The first of them that answers.
    async fn reach(
        &self,
        judged: &[SocketAddr],
        outgoing: &Outgoing,
    ) -> Result<Connection, Failure> {
        let mut failed = Failure::Refused;
        for address in judged {
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    // What is sent is sent at once.
                    stream.set_nodelay(true).map_err(|_| Failure::Terminated)?;
                    return match outgoing.scheme {
                        Scheme::Http => Ok(Connection::Plain(stream)),
                        Scheme::Https => {
                            let host = &outgoing.authority.host;
                            let tls = self.roots.encrypt(stream, host).await?;
                            Ok(Connection::Tls(Box::new(tls)))
                        }
                    };
                }
                Err(error) => {
                    failed = match error.kind() {
                        std::io::ErrorKind::TimedOut => Failure::ConnectTimeout,
                        _ => Failure::Refused,
                    };
                }
            }
        }
        Err(failed)
    }
}
