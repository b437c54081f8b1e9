//! Connections: to the address that was judged, and to no other.

use std::net::{IpAddr, SocketAddr};

use longshore_journal::http::Failure;
use longshore_policy::address::dialled;
use longshore_policy::authority::{Host, Scheme};
use longshore_policy::secrets::SecretName;
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
    /// A connection, if there is one by then. One of the secrets that it is for may be named that nobody on the way is
    /// to read.
    pub(super) async fn connect(
        &self,
        call: &str,
        outgoing: &Outgoing,
        guarded: Option<&SecretName>,
        until: Instant,
    ) -> Result<Connection, Failure> {
        let found = timeout_at(until, self.addresses(call, &outgoing.authority.host))
            .await
            .map_err(|_| Failure::DnsTimeout)??;
        let mut judged = self.judged(&found, outgoing)?;
        if let (Scheme::Http, Some(secret)) = (outgoing.scheme, guarded) {
            judged.retain(|address| address.ip().is_loopback());
            if judged.is_empty() {
                return Err(Failure::PlainSecret(secret.to_string()));
            }
        }
        timeout_at(until, self.reach(&judged, outgoing, until))
            .await
            .map_err(|_| Failure::ConnectTimeout)?
    }

    async fn addresses(&self, call: &str, host: &Host) -> Result<Vec<IpAddr>, Failure> {
        match host {
            Host::Address(address) => Ok(vec![*address]),
            Host::Name(name) => match self.resolver.resolve(call, name.as_str()).await {
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

    /// The first of them that answers. None of them may take more than its part of the time that is left, so that each
    /// is tried (RFC 8305 has them overlap, which is quicker and costs a connection more).
    async fn reach(
        &self,
        judged: &[SocketAddr],
        outgoing: &Outgoing,
        until: Instant,
    ) -> Result<Connection, Failure> {
        let mut failed = Failure::Refused;
        for (address, left) in judged.iter().zip((1..=judged.len()).rev()) {
            let now = Instant::now();
            let part = until.saturating_duration_since(now) / u32::try_from(left).unwrap_or(1);
            match timeout_at(now + part, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return self.prepared(stream, outgoing).await,
                Ok(Err(error)) if error.kind() != std::io::ErrorKind::TimedOut => {
                    failed = Failure::Refused;
                }
                Ok(Err(_)) | Err(_) => failed = Failure::ConnectTimeout,
            }
        }
        Err(failed)
    }

    async fn prepared(
        &self,
        stream: TcpStream,
        outgoing: &Outgoing,
    ) -> Result<Connection, Failure> {
        // What is sent is sent at once.
        stream.set_nodelay(true).map_err(|_| Failure::Terminated)?;
        match outgoing.scheme {
            Scheme::Http => Ok(Connection::Plain(stream)),
            Scheme::Https => {
                let tls = self.roots.encrypt(stream, &outgoing.authority.host).await?;
                Ok(Connection::Tls(Box::new(tls)))
            }
        }
    }
}
