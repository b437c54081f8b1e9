//! What a component lists beside its tools, and how it behaves while it is asked.

use longshore_tests::component::{Behaviour, Library, Made, Prompt, Resource};
use serde_json::json;

use super::{Row, check, server};

fn row(what: &str, library: Library, reason: &'static str, says: &'static str) -> Row {
    Row::new(what, Made::of_library(library).bytes(), reason, says)
}

fn of_resources(resources: Vec<Resource>) -> Library {
    Library {
        resources,
        ..Library::default()
    }
}

fn of_templates(templates: Vec<Resource>) -> Library {
    Library {
        templates,
        ..Library::default()
    }
}

fn of_prompts(prompts: Vec<Prompt>) -> Library {
    Library {
        prompts,
        ..Library::default()
    }
}

fn many(count: usize) -> Vec<Resource> {
    (0..count)
        .map(|n| Resource::at(&format!("test://{n}")))
        .collect()
}

#[tokio::test]
async fn what_is_no_resource_is_refused() {
    let at = |uri: &str, says| {
        row(
            uri,
            of_resources(vec![Resource::at(uri)]),
            "list-resources",
            says,
        )
    };
    let with = |change: &dyn Fn(&mut Resource), says| {
        let mut resource = Resource::at("test://a");
        change(&mut resource);
        row(says, of_resources(vec![resource]), "list-resources", says)
    };
    let huge = many(200)
        .into_iter()
        .map(|resource| Resource {
            description: Some("x".repeat(8 * 1024)),
            ..resource
        })
        .collect();
    let long = format!("t:{}", "x".repeat(8 * 1024));
    let rows = vec![
        row(
            "nothing",
            Library::default(),
            "list-tools",
            "lists no tool, no resource and no prompt",
        ),
        at("", "scheme"),
        at("/etc/passwd", "scheme"),
        at("test://a b", "percent-encode"),
        at("test://a\nb", "percent-encode"),
        at("test://é", "percent-encode"),
        at("test://%zz", "%25"),
        at(&long, "bytes"),
        row(
            "twice",
            of_resources(vec![Resource::at("test://a"), Resource::at("test://a")]),
            "list-resources",
            "listed twice",
        ),
        row(
            "1025",
            of_resources(many(1_025)),
            "list-resources",
            "lists 1025 resources",
        ),
        row(
            "1.6 MB",
            of_resources(huge),
            "list-resources",
            "bytes of text",
        ),
        with(&|it| it.name.clear(), "its name is empty"),
        with(
            &|it| it.description = Some("x".repeat(8 * 1024 + 1)),
            "its description has",
        ),
        with(&|it| it.extra = Some("[]".into()), "not a JSON object"),
        with(&|it| it.extra = Some("{".into()), "not JSON"),
        with(
            &|it| it.extra = Some(json!({ "uri": "test://b" }).to_string()),
            "use the field",
        ),
        with(
            &|it| it.extra = Some(json!({ "size": -1 }).to_string()),
            "extra.size",
        ),
        with(
            &|it| it.extra = Some(json!({ "icons": [{ "src": "http://127.0.0.1/" }] }).to_string()),
            "extra.icons",
        ),
    ];
    check(&server().await, rows).await;
}

#[tokio::test]
async fn what_is_no_template_is_refused() {
    let at = |text: &str, says| {
        row(
            text,
            of_templates(vec![Resource::at(text)]),
            "list-templates",
            says,
        )
    };
    let rows = vec![
        at("{+all}", "scheme"),
        at("test://{", "{ without its }"),
        at("test://{}", "no list of variables"),
        at("test://{a b}", "no list of variables"),
        at("test://{=a}", "operator"),
        at("test://a}", "} without its {"),
        at(&format!("t:{}", "{x}".repeat(17)), "17 expressions"),
        row(
            "twice",
            of_templates(vec![Resource::at("test://{a}"), Resource::at("test://{a}")]),
            "list-templates",
            "listed twice",
        ),
        row(
            "129",
            of_templates(
                (0..129)
                    .map(|n| Resource::at(&format!("test://{n}/{{x}}")))
                    .collect(),
            ),
            "list-templates",
            "lists 129 templates",
        ),
    ];
    check(&server().await, rows).await;
}

#[tokio::test]
async fn what_is_no_prompt_is_refused() {
    let named = |name: &str, says| {
        row(
            name,
            of_prompts(vec![Prompt::named(name)]),
            "list-prompts",
            says,
        )
    };
    let taking = |arguments: &[&str], says| {
        let prompt = Prompt {
            arguments: arguments
                .iter()
                .map(|name| ((*name).to_owned(), true))
                .collect(),
            ..Prompt::named("p")
        };
        row(says, of_prompts(vec![prompt]), "list-prompts", says)
    };
    let many: Vec<String> = (0..33).map(|n| n.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let rows = vec![
        named("", "clients refuse"),
        named("two words", "clients refuse"),
        named(&"n".repeat(65), "clients refuse"),
        taking(&[""], "the name of its argument"),
        taking(&[&"n".repeat(129)], "the name of its argument"),
        taking(&["a", "a"], "stands twice"),
        taking(&many, "it has 33 arguments"),
        row(
            "twice",
            of_prompts(vec![Prompt::named("p"), Prompt::named("p")]),
            "list-prompts",
            "listed twice",
        ),
        row(
            "129",
            of_prompts((0..129).map(|n| Prompt::named(&format!("p{n}"))).collect()),
            "list-prompts",
            "lists 129 prompts",
        ),
        row(
            "an extra that is a list",
            of_prompts(vec![Prompt {
                extra: Some("[1]".into()),
                ..Prompt::named("p")
            }]),
            "list-prompts",
            "not a JSON object",
        ),
    ];
    check(&server().await, rows).await;
}

#[tokio::test]
async fn a_component_that_does_not_give_a_list_is_given_up() {
    let names = ["list-resources", "list-templates", "list-prompts"];
    let mut rows = Vec::new();
    for (index, reason) in names.into_iter().enumerate() {
        for (behaviour, says) in [
            (Behaviour::Loops, "CPU"),
            (Behaviour::Traps, "unreachable"),
            (Behaviour::Sleeps(3_600_000), "more than 2 s"),
        ] {
            let mut library = of_resources(many(1));
            library.lists[index] = behaviour;
            rows.push(row(
                &format!("{reason} {behaviour:?}"),
                library,
                reason,
                says,
            ));
        }
    }
    check(&server().await, rows).await;
}

#[tokio::test]
async fn as_much_as_may_be_is_listed() {
    let server = server().await;
    let library = Library {
        resources: many(1_024),
        templates: (0..128)
            .map(|n| Resource::at(&format!("test://{n}/{{x}}")))
            .collect(),
        prompts: (0..128).map(|n| Prompt::named(&format!("p{n}"))).collect(),
        ..Library::default()
    };
    let reply = server
        .upload("much", Made::of_library(library).bytes())
        .await;
    assert_eq!(reply.status, 201, "{}", reply.json());
    let figures = server.figures().await;
    assert_eq!(
        (
            &figures["resources"],
            &figures["templates"],
            &figures["prompts"]
        ),
        (&json!(1_024), &json!(128), &json!(128))
    );
}
