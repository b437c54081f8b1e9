//! Names under which strangers register names of their own.
//!
//! A wildcard over one of these would grant what belongs to nobody in particular. The list is short and meant
//! against slips: two labels are asked for in any case, and what is here are the second levels that registries of
//! countries use and the places where anybody gets a name within a minute.

use crate::authority::Domain;

/// Second levels that registries hand names out under, below a country's two letters.
const REGISTRY: [&str; 21] = [
    "ac", "asso", "co", "com", "ed", "edu", "gen", "go", "gob", "gov", "gouv", "gv", "ltd", "mil",
    "ne", "net", "nom", "or", "org", "plc", "sch",
];

/// Names of companies under which their customers have names.
const SHARED: [&str; 32] = [
    "amazonaws.com",
    "appspot.com",
    "awsapps.com",
    "azurewebsites.net",
    "blogspot.com",
    "cloudapp.net",
    "cloudfront.net",
    "cloudfunctions.net",
    "deno.dev",
    "duckdns.org",
    "firebaseapp.com",
    "fly.dev",
    "github.io",
    "gitlab.io",
    "glitch.me",
    "googleapis.com",
    "herokuapp.com",
    "hf.space",
    "lovable.app",
    "myshopify.com",
    "netlify.app",
    "ngrok.io",
    "nip.io",
    "onrender.com",
    "pages.dev",
    "railway.app",
    "repl.co",
    "sslip.io",
    "vercel.app",
    "web.app",
    "windows.net",
    "workers.dev",
];

/// Whether names below it belong to whoever registers them.
pub(crate) fn is_public(domain: &Domain) -> bool {
    let mut labels = domain.labels().rev();
    let (outermost, second, third) = (labels.next(), labels.next(), labels.next());
    match (outermost, second, third) {
        (_, None, _) => true,
        (Some(outermost), Some(second), None) => {
            (outermost.len() == 2 && REGISTRY.contains(&second))
                || SHARED.contains(&domain.as_str())
        }
        _ => false,
    }
}
