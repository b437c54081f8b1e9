//! What a component offers beside its tools: what is accepted, what is refused and why, and who owns which URI.

use longshore_catalog::component::{Component, Digest, Shape};
use longshore_catalog::library::{
    Argument, Library, List, MAX_ARGUMENT_NAME, MAX_ARGUMENTS, MAX_LIST, MAX_MIME_TYPE,
    MAX_PROMPTS, MAX_RESOURCES, MAX_TEMPLATES, Offered, Prompt, Refusal, Resource, Template,
    accept,
};
use longshore_catalog::registry::{Kind, Registry};
use longshore_catalog::tool::{MAX_DESCRIPTION, MAX_EXTRA, MAX_NAME, MAX_TITLE};
use longshore_catalog::uri::MAX_URI;

fn resource(uri: &str) -> Resource {
    Resource {
        uri: uri.to_owned(),
        name: "r".to_owned(),
        mime_type: None,
        description: None,
        extra: None,
    }
}

fn template(text: &str) -> Template {
    Template {
        uri_template: text.to_owned(),
        name: "t".to_owned(),
        mime_type: None,
        description: None,
        extra: None,
    }
}

fn prompt(name: &str) -> Prompt {
    Prompt {
        name: name.to_owned(),
        title: None,
        description: None,
        arguments: Vec::new(),
        extra: None,
    }
}

fn argument(name: &str) -> Argument {
    Argument {
        name: name.to_owned(),
        description: None,
        required: false,
    }
}

fn of_resources(resources: Vec<Resource>) -> Offered {
    Offered {
        resources,
        ..Offered::default()
    }
}

fn of_templates(templates: Vec<Template>) -> Offered {
    Offered {
        templates,
        ..Offered::default()
    }
}

fn of_prompts(prompts: Vec<Prompt>) -> Offered {
    Offered {
        prompts,
        ..Offered::default()
    }
}

#[track_caller]
fn accepted(offered: Offered) -> Library {
    accept(offered).expect("it is in order").1
}

#[track_caller]
fn refused(offered: Offered, reason: &str, says: &str) {
    let refusal = accept(offered).expect_err(says);
    assert_eq!(refusal.reason(), reason, "{refusal}");
    let text = refusal.to_string();
    assert!(text.contains(says), "{says:?} is not in {text:?}");
    assert!(text.len() < 600, "{text}");
}

#[test]
fn lists_are_frozen_in_the_order_of_their_names() {
    let library = accepted(Offered {
        resources: vec![resource("test://b"), resource("test://a")],
        templates: vec![template("test://b/{x}"), template("test://a/{x}")],
        prompts: vec![prompt("b"), prompt("a")],
        completes: true,
        ..Offered::default()
    });
    assert_eq!(library.resources[0].uri, "test://a");
    assert_eq!(library.templates[0].uri_template, "test://a/{x}");
    assert_eq!(library.prompts[0].name, "a");
    assert!(library.completes);
    let stored = serde_json::to_string(&library).unwrap();
    assert_eq!(serde_json::from_str::<Library>(&stored).unwrap(), library);
}

#[test]
fn one_thing_to_offer_is_enough_and_none_is_not() {
    for offered in [
        of_resources(vec![resource("test://a")]),
        of_templates(vec![template("test://{x}")]),
        of_prompts(vec![prompt("p")]),
    ] {
        assert!(accept(offered).is_ok());
    }
    let only_completes = Offered {
        completes: true,
        ..Offered::default()
    };
    for nothing in [Offered::default(), only_completes] {
        assert_eq!(accept(nothing), Err(Refusal::Nothing));
    }
}

#[test]
fn what_stands_twice_is_refused() {
    let twice = "is listed twice";
    let same = || resource("test://a");
    refused(of_resources(vec![same(), same()]), "list-resources", twice);
    let same = || template("test://{a}");
    refused(of_templates(vec![same(), same()]), "list-templates", twice);
    refused(
        of_prompts(vec![prompt("p"), prompt("p")]),
        "list-prompts",
        twice,
    );
}

#[test]
fn what_is_no_uri_or_no_template_is_refused() {
    refused(
        of_resources(vec![resource("/a")]),
        "list-resources",
        "its URI does not begin",
    );
    refused(
        of_templates(vec![template("{a}")]),
        "list-templates",
        "its URI template does not begin",
    );
}

/// Makes a field so many bytes long.
type Change = fn(&mut Resource, usize);

#[test]
fn counts_and_sizes_have_their_edges() {
    let resources = |count| {
        of_resources(
            (0..count)
                .map(|n| resource(&format!("test://{n}")))
                .collect(),
        )
    };
    let templates = |count| {
        of_templates(
            (0..count)
                .map(|n| template(&format!("test://{n}/{{x}}")))
                .collect(),
        )
    };
    let prompts = |count| of_prompts((0..count).map(|n| prompt(&format!("p{n}"))).collect());
    assert_eq!(
        accepted(resources(MAX_RESOURCES)).resources.len(),
        MAX_RESOURCES
    );
    assert_eq!(
        accepted(templates(MAX_TEMPLATES)).templates.len(),
        MAX_TEMPLATES
    );
    assert_eq!(accepted(prompts(MAX_PROMPTS)).prompts.len(), MAX_PROMPTS);
    refused(
        resources(MAX_RESOURCES + 1),
        "list-resources",
        "lists 1025 resources",
    );
    refused(
        templates(MAX_TEMPLATES + 1),
        "list-templates",
        "lists 129 templates",
    );
    refused(
        prompts(MAX_PROMPTS + 1),
        "list-prompts",
        "lists 129 prompts",
    );

    let with = |change: &dyn Fn(&mut Resource)| {
        let mut it = resource("test://a");
        change(&mut it);
        of_resources(vec![it])
    };
    let rows: [(&str, usize, Change); 4] = [
        ("URI", MAX_URI, |it, n| {
            it.uri = format!("t:{}", "x".repeat(n - 2))
        }),
        ("name", MAX_TITLE, |it, n| it.name = "x".repeat(n)),
        ("media type", MAX_MIME_TYPE, |it, n| {
            it.mime_type = Some("x".repeat(n))
        }),
        ("description", MAX_DESCRIPTION, |it, n| {
            it.description = Some("x".repeat(n))
        }),
    ];
    for (what, most, change) in rows {
        accepted(with(&|it| change(it, most)));
        let says = format!("its {what} has {} bytes", most + 1);
        refused(with(&|it| change(it, most + 1)), "list-resources", &says);
    }
    refused(
        with(&|it| it.name.clear()),
        "list-resources",
        "its name is empty",
    );
    let extra = |bytes: usize| format!("{{\"title\":\"{}\"}}", "x".repeat(bytes - 12));
    accepted(with(&|it| it.extra = Some(extra(MAX_EXTRA))));
    refused(
        with(&|it| it.extra = Some(extra(MAX_EXTRA + 1))),
        "list-resources",
        "its extra has",
    );

    // What is within its own bounds can be too much together.
    let large = |bytes: usize| {
        let with = |n: usize, length: usize| {
            let mut it = resource(&format!("test://{n:03}"));
            let own = it.uri.len() + it.name.len();
            it.description = Some("x".repeat(length - own));
            it
        };
        // 128 of 8 KiB are all that there may be.
        let each = MAX_LIST / 128;
        let mut all: Vec<Resource> = (1..128).map(|n| with(n, each)).collect();
        all.push(with(128, each + bytes - MAX_LIST));
        of_resources(all)
    };
    let bytes = |offered: &Offered| -> usize {
        let each =
            |it: &Resource| it.uri.len() + it.name.len() + it.description.as_ref().unwrap().len();
        offered.resources.iter().map(each).sum()
    };
    assert_eq!(bytes(&large(MAX_LIST)), MAX_LIST);
    accepted(large(MAX_LIST));
    refused(
        large(MAX_LIST + 1),
        "list-resources",
        "1048577 bytes of text",
    );
}

#[test]
fn prompts_and_their_arguments_have_their_edges() {
    let with = |change: &dyn Fn(&mut Prompt)| {
        let mut it = prompt("p");
        change(&mut it);
        of_prompts(vec![it])
    };
    let named = |name: String| with(&|it| it.name.clone_from(&name));
    accepted(named("x".repeat(MAX_NAME)));
    for bad in [
        String::new(),
        "x".repeat(MAX_NAME + 1),
        "a b".into(),
        "é".into(),
        "a/b".into(),
    ] {
        refused(named(bad), "list-prompts", "clients refuse such a name");
    }
    accepted(with(&|it| it.title = Some("x".repeat(MAX_TITLE))));
    refused(
        with(&|it| it.title = Some("x".repeat(MAX_TITLE + 1))),
        "list-prompts",
        "its title has",
    );
    let many = |count: usize| {
        with(&|it| it.arguments = (0..count).map(|n| argument(&format!("a{n}"))).collect())
    };
    accepted(many(MAX_ARGUMENTS));
    refused(
        many(MAX_ARGUMENTS + 1),
        "list-prompts",
        "it has 33 arguments",
    );
    let one = |name: String| with(&|it| it.arguments = vec![argument(&name)]);
    accepted(one("x".repeat(MAX_ARGUMENT_NAME)));
    for bad in [String::new(), "x".repeat(MAX_ARGUMENT_NAME + 1)] {
        refused(one(bad), "list-prompts", "the name of its argument");
    }
    let twice = with(&|it| it.arguments = vec![argument("a"), argument("a")]);
    refused(twice, "list-prompts", "stands twice");
    let described = |bytes: usize| {
        with(&|it| {
            let mut one = argument("a");
            one.description = Some("x".repeat(bytes));
            it.arguments = vec![one];
        })
    };
    accepted(described(MAX_DESCRIPTION));
    refused(described(MAX_DESCRIPTION + 1), "list-prompts", "argument");
}

#[test]
fn further_members_are_an_object_without_fields() {
    let with = |extra: &str| {
        let mut it = resource("test://a");
        it.extra = Some(extra.to_owned());
        of_resources(vec![it])
    };
    accepted(with(r#"{"title":"T","size":1,"newer":{}}"#));
    let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
    for (extra, says) in [
        ("[]", "its extra is not a JSON object"),
        ("{", "its extra is not JSON"),
        (r#"{"a":1,"a":2}"#, "stands twice"),
        (r#"{"uri":"test://b"}"#, "use the field"),
        (&deep, "nested deeper"),
    ] {
        refused(with(extra), "list-resources", says);
    }
}

fn component(name: &str, library: Library) -> Component {
    Component {
        name: name.parse().unwrap(),
        digest: Digest::of(name.as_bytes()),
        size: 0,
        tools: Vec::new(),
        shape: Shape::Tools,
        left_out: Vec::new(),
        library,
        imports: Vec::new(),
        manifest: None,
        volatile: Vec::new(),
        installed_at_ms: 0,
    }
}

#[test]
fn a_uri_leads_to_whoever_lists_it_and_else_to_the_closest_template() {
    let listed = accepted(of_resources(vec![
        resource("test://t/1"),
        resource("test://a/../b"),
    ]));
    let wide = accepted(of_templates(vec![template("test://{+all}")]));
    let close = accepted(of_templates(vec![template("test://t/{id}")]));
    let registry = Registry::of([
        (component("listed", listed), ()),
        (component("wide", wide), ()),
        (component("close", close), ()),
    ])
    .unwrap();
    let holder = |uri: &str| {
        registry
            .holder_of(uri)
            .map(|entry| entry.component.name.to_string())
    };
    for (uri, expected) in [
        ("test://t/1", Some("listed")),
        ("test://t/2", Some("close")),
        ("test://t/2/3", Some("wide")),
        ("test://a/../b", Some("listed")),
        ("test://t/..", None),
        ("test://t/%2e%2E", None),
        ("test://x/./y", None),
        ("test://x/..?q", None),
        ("test://x/...", Some("wide")),
        ("test://x?/../y", Some("wide")),
        ("other://t/1", None),
        ("", None),
    ] {
        assert_eq!(holder(uri).as_deref(), expected, "{uri}");
    }
    let without = registry.without(&"close".parse().unwrap());
    let entry = without.holder_of("test://t/2").unwrap();
    assert_eq!(entry.component.name.as_str(), "wide");
}

#[test]
fn a_clash_of_any_kind_names_both_owners() {
    let each = [
        (Kind::Resource, of_resources(vec![resource("test://a")])),
        (Kind::Template, of_templates(vec![template("test://{a}")])),
        (Kind::Prompt, of_prompts(vec![prompt("p")])),
    ];
    for (kind, offered) in each {
        let library = accepted(offered);
        let registry = Registry::of([(component("holder", library.clone()), ())]).unwrap();
        assert_eq!(registry.count(kind), 1);
        let clash = registry
            .with(component("newcomer", library), ())
            .unwrap_err();
        assert_eq!(clash.kind, kind);
        let text = clash.to_string();
        assert!(
            text.contains("holder") && text.contains("newcomer"),
            "{text}"
        );
        assert_eq!(registry.without(&"holder".parse().unwrap()).count(kind), 0);
    }
    // Names of different kinds do not meet.
    let resource = accepted(of_resources(vec![resource("test://a")]));
    let template = accepted(of_templates(vec![template("test://a")]));
    assert!(
        Registry::of([
            (component("one", resource), ()),
            (component("two", template), ())
        ])
        .is_ok()
    );
    let list = List::Resources.to_string();
    assert_eq!(list, "resources");
}
