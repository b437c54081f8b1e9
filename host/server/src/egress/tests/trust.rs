//! Who is believed to be who they say.

use rcgen::{BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::*;

struct Signer {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

fn signer(name: &str) -> Signer {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, key);
    Signer {
        certificate,
        issuer,
    }
}

type Change = fn(&mut CertificateParams);

/// A host with a certificate for that name, which speaks TLS and says hello.
async fn host(signer: &Signer, name: &str, change: Change) -> u16 {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    change(&mut params);
    let certificate = params.signed_by(&key, &signer.issuer).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                let mut piece = [0; 4096];
                let _head = stream.read(&mut piece).await;
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
                let _gone = stream.write_all(answer).await;
                let _likewise = stream.shutdown().await;
            });
        }
    });
    port
}

fn trusting(signer: &Signer) -> Egress {
    let mut egress = egress();
    egress.resolver = Names::of(&[("good.test", &[&["127.0.0.1"]])]);
    egress.roots.only = Some(vec![signer.certificate.der().clone()]);
    egress
}

#[tokio::test]
async fn a_certificate_is_good_for_its_name_its_time_and_its_authority() {
    let (known, stranger) = (signer("known"), signer("stranger"));
    let unchanged: Change = |_| {};
    let old: Change = |params| {
        params.not_before = rcgen::date_time_ymd(2000, 1, 1);
        params.not_after = rcgen::date_time_ymd(2001, 1, 1);
    };
    let cases = [
        ("good.test", &known, unchanged, None),
        ("other.test", &known, unchanged, Some("not valid for name")),
        ("good.test", &stranger, unchanged, Some("UnknownIssuer")),
        ("good.test", &known, old, Some("expired")),
    ];
    for (name, signed_by, change, fault) in cases {
        let port = host(signed_by, name, change).await;
        let outgoing = to(Scheme::Https, &format!("good.test:{port}"));
        match (trusting(&known).send("c", outgoing).await, fault) {
            (Ok(response), None) => assert_eq!(&response.body[..], b"hi"),
            (Err(Failure::Certificate(text)), Some(fault)) => {
                assert!(text.contains(fault), "{text}");
            }
            (outcome, fault) => panic!("{outcome:?}, {fault:?}"),
        }
    }
}

#[tokio::test]
async fn whoever_does_not_speak_tls_is_not_spoken_to() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let read = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        write(&mut stream, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
        let mut read = Vec::new();
        let _gone = stream.read_to_end(&mut read).await;
        String::from_utf8_lossy(&read).into_owned()
    });
    let outgoing = to(Scheme::Https, &format!("good.test:{port}"));
    let outcome = trusting(&signer("known")).send("c", outgoing).await;
    assert!(matches!(outcome, Err(Failure::Tls(_))), "{outcome:?}");
    assert!(!read.await.unwrap().contains("/a?b=c"));
}
