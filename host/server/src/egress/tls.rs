//! Encryption, and whom to trust.

use std::io;
use std::sync::{Arc, OnceLock};

use longshore_journal::http::Failure;
use longshore_policy::authority::Host;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, Error, RootCertStore};

/// Whom to trust. The authorities of a machine are read when they are first needed.
#[derive(Default)]
pub(super) struct Roots {
    /// In place of those of this machine.
    #[cfg(test)]
    pub(super) only: Option<Vec<CertificateDer<'static>>>,
    made: OnceLock<Arc<ClientConfig>>,
}

impl Roots {
    #[cfg(test)]
    fn trusted(&self) -> Vec<CertificateDer<'static>> {
        self.only.clone().unwrap_or_else(of_this_machine)
    }

    #[cfg(not(test))]
    fn trusted(&self) -> Vec<CertificateDer<'static>> {
        of_this_machine()
    }

    fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(self.made.get_or_init(|| {
            let mut store = RootCertStore::empty();
            store.add_parsable_certificates(self.trusted());
            if store.is_empty() {
                tracing::warn!(
                    "there are no certificates of authorities, so that no host can be trusted over TLS: install those of this system, or name a file of them in SSL_CERT_FILE"
                );
            }
            let provider = Arc::new(ring::default_provider());
            let mut config = ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .expect("the provider has them")
                .with_root_certificates(store)
                .with_no_client_auth();
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            Arc::new(config)
        }))
    }

    /// The same connection, encrypted, to that very host.
    pub(super) async fn encrypt(
        &self,
        stream: TcpStream,
        host: &Host,
    ) -> Result<TlsStream<TcpStream>, Failure> {
        let name = match host {
            Host::Name(name) => ServerName::try_from(name.as_str().to_owned())
                .map_err(|_| Failure::Certificate("no certificate can have that name".into()))?,
            Host::Address(address) => ServerName::from(*address),
        };
        // Reading the authorities of a machine takes a while, once.
        let config = self.config();
        TlsConnector::from(config)
            .connect(name, stream)
            .await
            .map_err(|error| failure(&error))
    }
}

/// As this system keeps them, or as the usual variables say.
fn of_this_machine() -> Vec<CertificateDer<'static>> {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "certificates of authorities cannot be read");
    }
    found.certs
}

fn failure(error: &io::Error) -> Failure {
    match error.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(Error::InvalidCertificate(fault)) => Failure::Certificate(short(&fault.to_string())),
        Some(fault @ Error::NoCertificatesPresented) => Failure::Certificate(fault.to_string()),
        Some(fault) => Failure::Tls(short(&fault.to_string())),
        None => Failure::Terminated,
    }
}

/// One line, whatever the other side says.
fn short(text: &str) -> String {
    const CHARS: usize = 120;
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(CHARS).collect()
}
