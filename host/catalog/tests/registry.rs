//! Every tool has exactly one owner, whatever is installed, replaced and removed.

mod common;

use std::collections::BTreeMap;

use common::Random;
use longshore_catalog::component::{Component, Digest, Name, Shape};
use longshore_catalog::library::Library;
use longshore_catalog::registry::{Clash, Kind, Place, Registry};
use longshore_catalog::tool::{TaskMode, Tool};

fn component(name: &str, bytes: &str, tools: &[&str]) -> Component {
    Component {
        name: name.parse().unwrap(),
        digest: Digest::of(bytes.as_bytes()),
        size: bytes.len() as u64,
        tools: tools.iter().map(|name| tool(name)).collect(),
        shape: Shape::Tools,
        left_out: Vec::new(),
        library: Library::default(),
        imports: Vec::new(),
        manifest: None,
        volatile: Vec::new(),
        installed_at_ms: 0,
    }
}

fn tool(name: &str) -> Tool {
    Tool {
        name: name.to_owned(),
        title: None,
        description: String::new(),
        input_schema: r#"{"type":"object"}"#.to_owned(),
        output_schema: None,
        task_mode: TaskMode::Auto,
        requires: Vec::new(),
        extra: None,
        deadline_ms: None,
    }
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn names<T>(registry: &Registry<T>) -> Vec<String> {
    registry
        .tools()
        .map(|owned| owned.tool.name.clone())
        .collect()
}

#[test]
fn a_tool_is_found_with_its_component_and_payload() {
    let registry = Registry::of([
        (component("two", "2", &["c", "a"]), 2),
        (component("one", "1", &["b"]), 1),
    ])
    .unwrap();
    assert_eq!(names(&registry), ["a", "b", "c"]);
    let found = registry.tool("c").unwrap();
    assert_eq!(
        (
            found.tool.name.as_str(),
            found.entry.component.name.as_str(),
            found.entry.payload
        ),
        ("c", "two", 2)
    );
    assert!(registry.tool("C").is_none());
    let order: Vec<&str> = registry
        .components()
        .map(|entry| entry.component.name.as_str())
        .collect();
    assert_eq!(order, ["one", "two"]);
}

#[test]
fn a_clash_names_both_owners_and_changes_nothing() {
    let before = Registry::of([(component("holder", "1", &["a", "b"]), 1)]).unwrap();
    let newcomer = component("newcomer", "2", &["c", "b"]);
    let clash = before.with(newcomer.clone(), 2).unwrap_err();
    assert_eq!(
        clash,
        Clash {
            kind: Kind::Tool,
            name: "b".to_owned(),
            holder: name("holder"),
            newcomer: name("newcomer")
        }
    );
    assert_eq!(before.check(&newcomer), Err(clash.clone()));
    assert_eq!(clash.reason(), "name-collision");
    let text = clash.to_string();
    assert!(
        text.contains("holder") && text.contains("newcomer") && text.contains("\"b\""),
        "{text}"
    );
    assert_eq!(names(&before), ["a", "b"]);
}

#[test]
fn a_component_that_lists_a_name_twice_clashes_with_itself() {
    let clash = Registry::default()
        .with(component("one", "1", &["a", "a"]), ())
        .unwrap_err();
    assert_eq!((clash.holder, clash.newcomer), (name("one"), name("one")));
}

#[test]
fn replacing_keeps_shared_tools_and_drops_the_rest() {
    let before = Registry::of([
        (component("one", "1", &["a", "b"]), 1),
        (component("two", "2", &["c"]), 2),
    ])
    .unwrap();
    let after = before.with(component("one", "1b", &["b", "d"]), 3).unwrap();
    assert_eq!(names(&after), ["b", "c", "d"]);
    assert_eq!(after.tool("b").unwrap().entry.payload, 3);
    assert_eq!(
        after.component(&name("one")).unwrap().component.digest,
        Digest::of(b"1b")
    );
    assert_eq!(names(&before), ["a", "b", "c"]);
    assert_eq!(before.tool("b").unwrap().entry.payload, 1);
    let freed = after.with(component("two", "2", &["a", "c"]), 4).unwrap();
    assert_eq!(freed.tool("a").unwrap().entry.payload, 4);
}

#[test]
fn removing_takes_all_tools_of_one_component() {
    let before = Registry::of([
        (component("one", "1", &["a", "b"]), 1),
        (component("two", "2", &["c"]), 2),
    ])
    .unwrap();
    assert_eq!(names(&before.without(&name("one"))), ["c"]);
    assert_eq!(names(&before.without(&name("none"))), ["a", "b", "c"]);
    assert!(
        before
            .without(&name("one"))
            .component(&name("one"))
            .is_none()
    );
}

fn tool_name<T>(place: &Place<'_, T>) -> String {
    place.entry.component.tools[place.index].name.clone()
}

#[test]
fn pages_join_to_the_whole_list() {
    let all: Vec<String> = (0..10).map(|n| format!("t{n}")).collect();
    let listed: Vec<&str> = all.iter().map(String::as_str).collect();
    let registry = Registry::of([(component("one", "1", &listed), ())]).unwrap();
    for limit in 0..12 {
        let (mut seen, mut after, mut pages) = (Vec::new(), None, 0);
        loop {
            let page = registry.page(Kind::Tool, after, limit);
            assert!(page.places.len() <= limit.max(1) && !page.places.is_empty());
            seen.extend(page.places.iter().map(tool_name));
            pages += 1;
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(
            (seen, pages),
            (all.clone(), 10_usize.div_ceil(limit.max(1))),
            "limit {limit}"
        );
    }
    let gone = registry.page(Kind::Tool, Some("t33"), 2);
    assert_eq!(tool_name(&gone.places[0]), "t4");
    let end = registry.page(Kind::Tool, Some("z"), 2);
    assert!(end.places.is_empty() && end.next.is_none());
    let empty = Registry::<()>::default();
    let first = empty.page(Kind::Tool, None, 5);
    assert!(first.places.is_empty() && first.next.is_none());
}

/// A plain map of what should be there, against the registry, through random changes.
#[test]
fn every_tool_has_exactly_one_owner_whatever_happens() {
    let (component_names, tool_names) = (
        ["a", "b", "c", "d"],
        ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7"],
    );
    let (mut clashes, mut installs) = (0, 0);
    for seed in 0..300 {
        let mut random = Random::seeded(seed);
        let mut registry = Registry::default();
        let mut model: BTreeMap<&str, (u32, Vec<&str>)> = BTreeMap::new();
        for step in 0..40_u32 {
            let who = *random.pick(&component_names);
            if random.below(4) == 0 {
                registry = registry.without(&name(who));
                model.remove(who);
            } else {
                let mut tools: Vec<&str> = (0..random.below(4))
                    .map(|_| *random.pick(&tool_names))
                    .collect();
                tools.sort_unstable();
                tools.dedup();
                let taken = tools.iter().find_map(|tool| {
                    let holder = model
                        .iter()
                        .find(|(other, (_, has))| **other != who && has.contains(tool));
                    holder.map(|(other, _)| (*tool, *other))
                });
                let outcome = registry.with(component(who, &format!("{step}"), &tools), step);
                match (outcome, taken) {
                    (Ok(next), None) => {
                        registry = next;
                        model.insert(who, (step, tools));
                        installs += 1;
                    }
                    (Err(clash), Some((tool, holder))) => {
                        assert_eq!(
                            (clash.name.as_str(), clash.holder.as_str()),
                            (tool, holder),
                            "seed {seed}"
                        );
                        assert_eq!(clash.newcomer.as_str(), who, "seed {seed}");
                        clashes += 1;
                    }
                    (outcome, taken) => {
                        panic!("seed {seed} step {step}: {outcome:?} though {taken:?}")
                    }
                }
            }
            let mut expected: Vec<(&str, &str, u32)> = model
                .iter()
                .flat_map(|(who, (payload, tools))| {
                    tools.iter().map(move |tool| (*tool, *who, *payload))
                })
                .collect();
            expected.sort_unstable();
            let listed: Vec<(&str, &str, u32)> = registry
                .tools()
                .map(|owned| {
                    (
                        owned.tool.name.as_str(),
                        owned.entry.component.name.as_str(),
                        owned.entry.payload,
                    )
                })
                .collect();
            assert_eq!(listed, expected, "seed {seed} step {step}");
            for tool in tool_names {
                let owner = registry
                    .tool(tool)
                    .map(|owned| owned.entry.component.name.as_str());
                let expected = expected
                    .iter()
                    .find(|(name, ..)| *name == tool)
                    .map(|(_, who, _)| *who);
                assert_eq!(owner, expected, "seed {seed} step {step}");
            }
            assert_eq!(registry.components().len(), model.len());
        }
    }
    assert!(
        clashes > 500 && installs > 500,
        "{clashes} clashes, {installs} installs"
    );
}
