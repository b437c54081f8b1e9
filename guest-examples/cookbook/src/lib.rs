//! Recipes to read, and a prompt to plan a meal with. There is nothing to call.

use longshore_guest::prompt::Message;
use longshore_guest::{prompt, resource};

/// Dishes, and how they are made.
const RECIPES: [(&str, &str); 3] = [
    (
        "omelette",
        "Beat three eggs with salt. Fry them in butter, and fold.",
    ),
    (
        "pancakes",
        "Mix flour, milk and eggs. Fry thinly, on both sides.",
    ),
    (
        "porridge",
        "Simmer oats in water with a pinch of salt. Stir.",
    ),
];

/// The dishes that there are recipes of.
#[resource("recipe:all", mime_type = "text/plain", title = "All dishes")]
fn all() -> String {
    RECIPES.map(|(dish, _)| dish).join("\n")
}

/// How one dish is made.
#[resource("recipe:{dish}", mime_type = "text/plain")]
fn recipe(#[resource(complete = dishes)] dish: String) -> Option<&'static str> {
    let mut recipes = RECIPES.into_iter();
    recipes
        .find(|(known, _)| *known == dish)
        .map(|(_, recipe)| recipe)
}

/// Plans a meal around one dish.
#[prompt(title = "Plan a meal")]
fn plan_meal(
    /// What there is to eat.
    #[prompt(complete = dishes)]
    dish: String,
    /// How many people come.
    guests: Option<String>,
) -> Result<Vec<Message>, String> {
    let recipe = recipe(dish.clone()).ok_or_else(|| format!("there is no recipe of {dish}"))?;
    let guests = guests.unwrap_or_else(|| "two".to_owned());
    Ok(vec![
        Message::user(format!("Plan a meal for {guests} with {dish}.")),
        Message::assistant(format!("It is made like this: {recipe}")),
        Message::user("What goes with it?"),
    ])
}

fn dishes(typed: &str) -> Vec<&'static str> {
    let dishes = RECIPES.into_iter().map(|(dish, _)| dish);
    dishes.filter(|dish| dish.starts_with(typed)).collect()
}
