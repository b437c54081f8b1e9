//! What holds for every manifest, every grant and every tenant.

use std::collections::{BTreeMap, BTreeSet};

use longshore_policy::authority::{Authority, Scheme};
use longshore_policy::dirs::{Access, Asked, Mount};
use longshore_policy::env::EnvName;
use longshore_policy::grant::Grant;
use longshore_policy::http::{InDoubt, Rule, Target};
use longshore_policy::limits::{BOUNDS, Limits, Named};
use longshore_policy::manifest::Manifest;
use longshore_policy::pattern::HostPattern;
use longshore_policy::policy::{MOST_RULES, Policy, Tenant};
use longshore_policy::secrets::{Kind, Secret};

/// Chance that comes again.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.bits() % bound as u64).unwrap()
    }

    fn is_so(&mut self) -> bool {
        self.below(2) == 0
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    fn some<T>(&mut self, most: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| make(self)).collect()
    }
}

const PATTERNS: [&str; 8] = [
    "a.test",
    "b.a.test",
    "*.a.test",
    "*.b.a.test",
    "*.c.test",
    "x.c.test",
    "10.0.0.1",
    "*",
];
const HOSTS: [&str; 8] = [
    "a.test",
    "b.a.test",
    "c.b.a.test",
    "x.c.test",
    "c.test",
    "10.0.0.1",
    "10.0.0.2",
    "d.test",
];
const METHODS: [&str; 5] = ["", "GET ", "POST ", "GET,POST ", "* "];
const PORTS: [&str; 3] = ["", ":81", ":*"];
const PATHS: [&str; 3] = ["/a", "/b", "/c"];
const NAMES: [&str; 3] = ["A", "B", "C"];

fn rule(chance: &mut Chance) -> Rule {
    let scheme = chance.one(&["http", "https"]);
    let (methods, host) = (chance.one(&METHODS), chance.one(&PATTERNS));
    let text = format!("{methods}{scheme}://{host}{}", chance.one(&PORTS));
    text.parse().unwrap()
}

fn access(chance: &mut Chance) -> Access {
    *chance.one(&[Access::ReadOnly, Access::ReadWrite])
}

fn name(chance: &mut Chance) -> EnvName {
    chance.one(&NAMES).parse().unwrap()
}

fn limits(chance: &mut Chance) -> Named {
    let named = chance.some(6, |chance| {
        let name = chance.one(&BOUNDS).name.to_owned();
        (name, 1 + chance.below(200) as u64)
    });
    Named::try_from(named.into_iter().collect::<BTreeMap<_, _>>()).unwrap()
}

fn secrets(chance: &mut Chance) -> Vec<Secret> {
    let mut of = Vec::new();
    for name in ["one", "two"] {
        if chance.is_so() {
            of.push(Secret {
                name: name.parse().unwrap(),
                hosts: vec![chance.one(&PATTERNS[..7]).parse().unwrap()],
                kind: chance.one(&[Kind::Bearer, Kind::Basic]).clone(),
                plain: false,
            });
        }
    }
    of
}

fn manifest(chance: &mut Chance) -> Manifest {
    let mut dirs = Vec::new();
    for guest in PATHS {
        if chance.is_so() {
            let guest = guest.parse().unwrap();
            dirs.push(Asked {
                guest,
                access: access(chance),
            });
        }
    }
    Manifest {
        http: chance.some(5, rule),
        dirs,
        env: chance.some(3, name).into_iter().collect::<BTreeSet<_>>(),
        secrets: secrets(chance),
        limits: limits(chance),
        cleanup: chance.is_so(),
        usage: false,
    }
}

fn grant(chance: &mut Chance) -> Grant {
    let mut dirs = Vec::new();
    for guest in PATHS {
        if chance.is_so() {
            let (guest, host) = (guest.parse().unwrap(), "/srv".parse().unwrap());
            dirs.push(Mount {
                guest,
                host,
                access: access(chance),
            });
        }
    }
    Grant {
        http: chance.some(5, rule),
        dirs,
        env: chance
            .some(3, |chance| (name(chance), "x".to_owned()))
            .into_iter()
            .collect(),
        secrets: secrets(chance),
        limits: limits(chance),
        cleanup: chance.is_so(),
    }
}

fn tenant(chance: &mut Chance) -> Tenant {
    Tenant {
        most: chance.is_so().then(|| manifest(chance)),
        any_host: chance.is_so(),
    }
}

/// Requests of every kind, of which each rule here lets some be sent.
fn targets() -> impl Iterator<Item = Target> {
    let schemes = [Scheme::Http, Scheme::Https];
    let places = HOSTS
        .iter()
        .flat_map(move |host| schemes.map(|scheme| (host, scheme)));
    let ports = places.flat_map(|place| ["", ":81"].map(|port| (place, port)));
    let all = ports.flat_map(|place| ["GET", "POST", "PUT"].map(|method| (place, method)));
    all.map(|(((host, scheme), port), method)| Target {
        scheme,
        authority: Authority::read(scheme, &format!("{host}{port}")).unwrap(),
        method: method.parse().unwrap(),
    })
}

/// Everything that a policy allows, one by one.
fn allows(policy: &Policy) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for target in targets() {
        if policy.verdict(&target).is_ok() {
            let Target {
                scheme,
                authority,
                method,
            } = target;
            all.insert(format!("{method} {scheme}://{authority}"));
        }
    }
    for host in HOSTS {
        for secret in &policy.secrets {
            let to = longshore_policy::authority::Host::read(host).unwrap();
            if secret.is_for(&to) {
                all.insert(format!("{} {:?} to {to}", secret.name, secret.kind));
            }
        }
    }
    for mount in &policy.dirs {
        all.insert(format!("look into {}", mount.guest));
        if mount.access == Access::ReadWrite {
            all.insert(format!("change {}", mount.guest));
        }
    }
    all.extend(policy.env.keys().map(|name| format!("read {name}")));
    if policy.cleanup {
        all.insert("clean up".to_owned());
    }
    all
}

fn numbers(limits: &Limits) -> Vec<u64> {
    let limits = serde_json::to_value(limits).unwrap();
    let numbers = limits.as_object().unwrap().values();
    numbers.map(|number| number.as_u64().unwrap()).collect()
}

/// Whether the first allows nothing, and gives nothing, that the second does not.
fn is_within(narrow: &Policy, wide: &Policy) -> bool {
    let (few, many) = (numbers(&narrow.limits), numbers(&wide.limits));
    allows(narrow).is_subset(&allows(wide)) && few.iter().zip(&many).all(|(few, many)| few <= many)
}

/// What a ceiling allows: what would be in force if everything were granted that it names.
fn under(ceiling: &Manifest) -> BTreeSet<String> {
    let Manifest {
        http,
        dirs,
        env,
        secrets,
        limits: _,
        cleanup,
        usage: _,
    } = ceiling.clone();
    let mount = |asked: Asked| Mount {
        guest: asked.guest,
        host: "/srv".parse().unwrap(),
        access: asked.access,
    };
    let all = Grant {
        http,
        dirs: dirs.into_iter().map(mount).collect(),
        env: env.into_iter().map(|name| (name, String::new())).collect(),
        secrets,
        limits: Named::default(),
        cleanup,
    };
    let open = Tenant {
        most: None,
        any_host: true,
    };
    allows(&Policy::in_force(None, &all, &open, &Limits::default()))
}

const ROUNDS: u64 = 1_500;

#[test]
fn what_is_in_force_is_what_all_three_agree_on() {
    let own = Limits::default();
    let mut tried = 0;
    for seed in 0..ROUNDS {
        let mut chance = Chance::new(seed);
        let asked = chance.is_so().then(|| manifest(&mut chance));
        let (grant, tenant) = (grant(&mut chance), tenant(&mut chance));
        let in_force = Policy::in_force(asked.as_ref(), &grant, &tenant, &own);
        let alone = Tenant {
            most: None,
            any_host: tenant.any_host,
        };
        let granted = Policy::in_force(None, &grant, &alone, &own);
        let mut expected = allows(&granted);
        for ceiling in [&asked, &tenant.most].into_iter().flatten() {
            expected = &expected & &under(ceiling);
            let lowered = numbers(&ceiling.limits.in_place_of(&own));
            let named = numbers(&ceiling.limits.lowering(&in_force.limits));
            assert_eq!(
                named,
                numbers(&in_force.limits),
                "seed {seed}: above {lowered:?}"
            );
        }
        assert!(is_within(&in_force, &granted), "seed {seed}");
        assert_eq!(allows(&in_force), expected, "seed {seed}");
        tried += usize::from(!expected.is_empty());
    }
    assert!(tried > 500, "chance has tried too few: {tried}");
}

/// The same with one thing less.
fn narrowed(list: &mut Vec<Rule>, chance: &mut Chance) {
    if list.is_empty() {
        return;
    }
    let at = chance.below(list.len());
    let by = rule(chance);
    match Rule::meet(&list[at], &by) {
        Some(less) => list[at] = less,
        None => drop(list.remove(at)),
    }
}

fn one_less<T>(list: &mut Vec<T>, chance: &mut Chance) {
    if !list.is_empty() {
        let at = chance.below(list.len());
        drop(list.remove(at));
    }
}

fn narrower_manifest(of: &Manifest, chance: &mut Chance) -> Manifest {
    let mut less = of.clone();
    match chance.below(6) {
        0 => narrowed(&mut less.http, chance),
        1 => one_less(&mut less.dirs, chance),
        2 => less
            .dirs
            .iter_mut()
            .for_each(|asked| asked.access = Access::ReadOnly),
        3 => drop(less.env.pop_first()),
        4 => one_less(&mut less.secrets, chance),
        _ => less.cleanup = false,
    }
    less
}

#[test]
fn narrowing_what_goes_in_never_widens_what_comes_out() {
    let own = Limits::default();
    let mut narrowed_by = 0;
    for seed in 0..ROUNDS {
        let mut chance = Chance::new(seed);
        let asked = manifest(&mut chance);
        let (mut granted, bounded) = (grant(&mut chance), tenant(&mut chance));
        if !bounded.any_host {
            // Such a rule is no wide one, but none.
            granted.http.retain(|rule| rule.host != HostPattern::Any);
        }
        let before = Policy::in_force(Some(&asked), &granted, &bounded, &own);
        let (mut less_asked, mut less_granted, mut less_bounded) = (asked, granted, bounded);
        match chance.below(3) {
            0 => less_asked = narrower_manifest(&less_asked, &mut chance),
            1 => match chance.below(5) {
                0 => narrowed(&mut less_granted.http, &mut chance),
                1 => one_less(&mut less_granted.dirs, &mut chance),
                2 => drop(less_granted.env.pop_first()),
                3 => one_less(&mut less_granted.secrets, &mut chance),
                _ => less_granted.cleanup = false,
            },
            _ => match &mut less_bounded {
                Tenant {
                    most: Some(most), ..
                } => *most = narrower_manifest(most, &mut chance),
                Tenant { any_host, most } if *any_host => {
                    *any_host = false;
                    *most = None;
                }
                Tenant { most, .. } => *most = Some(manifest(&mut chance)),
            },
        }
        let after = Policy::in_force(Some(&less_asked), &less_granted, &less_bounded, &own);
        assert!(
            is_within(&after, &before),
            "seed {seed}: {after:#?} is not within {before:#?}"
        );
        narrowed_by += usize::from(allows(&after) != allows(&before));
    }
    assert!(
        narrowed_by > 100,
        "chance has narrowed too little: {narrowed_by}"
    );
}

#[test]
fn a_manifest_talks_nobody_out_of_being_careful() {
    let own = Limits::default();
    let open = Tenant::default();
    let mut tried = 0;
    for seed in 0..ROUNDS {
        let mut chance = Chance::new(seed);
        let mut granted = grant(&mut chance);
        for rule in &mut granted.http {
            rule.treat_as_write = chance.is_so();
            rule.in_doubt = Some([InDoubt::Fail, InDoubt::Resend][chance.below(2)]);
        }
        let asked = manifest(&mut chance);
        let alone = Policy::in_force(None, &granted, &open, &own);
        let within = Policy::in_force(Some(&asked), &granted, &open, &own);
        for target in targets() {
            let Ok(permit) = within.verdict(&target) else {
                continue;
            };
            let careful = alone.verdict(&target).expect("it is within");
            assert!(
                permit.is_write || !careful.is_write,
                "seed {seed}: {target:?}"
            );
            assert_eq!(permit.in_doubt, careful.in_doubt, "seed {seed}: {target:?}");
            tried += 1;
        }
    }
    assert!(tried > 500, "chance has tried too few: {tried}");
}

#[test]
fn rules_in_force_have_a_bound_and_none_is_left_out() {
    let own = Limits::default();
    let rule =
        |host: &str, methods: &str| format!("[[http]]\nhost = \"{host}\"\nmethods = [{methods}]\n");
    // Each of these meets each of those.
    let granted = (0..32).map(|n| rule("*.example.org", &format!("\"GET\", \"M{n}\"")));
    let granted: String = granted.collect();
    let asked = |rules: usize| {
        let rules = (0..rules).map(|n| rule(&format!("h{n}.example.org"), "\"*\""));
        Manifest::of_toml(&rules.collect::<String>()).unwrap()
    };
    let grant = Grant::of_toml(&granted).unwrap();
    let in_force = |rules| Policy::in_force(Some(&asked(rules)), &grant, &Tenant::default(), &own);
    assert_eq!(in_force(32).http.len(), MOST_RULES);
    assert!(in_force(33).http.is_empty());
    // The same twice is one.
    let twice = Grant::of_toml(&format!("{granted}{granted}")).unwrap();
    let policy = Policy::in_force(Some(&asked(32)), &twice, &Tenant::default(), &own);
    assert_eq!(policy.http.len(), MOST_RULES);
}

#[test]
fn without_a_manifest_there_is_what_is_granted_and_nothing_else() {
    let own = Limits::default();
    let nothing = Policy::in_force(None, &Grant::default(), &Tenant::default(), &own);
    assert_eq!(nothing, Policy::nothing(own.clone()));
    let grant = Grant::of_toml("[[http]]\nhost = \"a.test\"").unwrap();
    let policy = Policy::in_force(None, &grant, &Tenant::default(), &own);
    assert_eq!(policy.http, grant.http);
    // A manifest that asks for nothing is a promise.
    let asked = Manifest::default();
    let policy = Policy::in_force(Some(&asked), &grant, &Tenant::default(), &own);
    assert!(policy.http.is_empty());
}

#[test]
fn every_host_is_a_matter_of_the_operators_switch() {
    let grant = Grant::of_toml("[[http]]\nhost = \"*\"").unwrap();
    let own = Limits::default();
    let shut = Policy::in_force(None, &grant, &Tenant::default(), &own);
    assert!(shut.http.is_empty());
    let open = Tenant {
        most: None,
        any_host: true,
    };
    assert_eq!(Policy::in_force(None, &grant, &open, &own).http, grant.http);
}
