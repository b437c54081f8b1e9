//! A tool that needs an answer from the person before it can go on.

use longshore_guest::ask::Reply;
use longshore_guest::{Argument, CallError, Context, tool};

#[derive(Argument)]
struct Person {
    #[tool(title = "Name")]
    name: String,
    #[tool(title = "Age", maximum = 150)]
    age: u8,
    #[tool(title = "Favourite colour")]
    choice: Colour,
}

#[derive(Debug, Argument)]
#[tool(rename_all = "kebab-case")]
enum Colour {
    Red,
    Green,
    Blue,
}

/// Asks the person for a name, an age and a colour, and says what they answered.
#[tool(task_mode = "always")]
fn ask_form(ctx: &Context) -> Result<String, CallError> {
    Ok(match ctx.ask("person", "Who are you?")? {
        Reply::Accepted(Person { name, age, choice }) => {
            let colour = match choice {
                Colour::Red => "red",
                Colour::Green => "green",
                Colour::Blue => "blue",
            };
            format!("{name} is {age} and chose {colour}")
        }
        Reply::Declined => "the person declined to answer".to_owned(),
        Reply::Dismissed => "the person closed the question".to_owned(),
    })
}
