//! A library with types of its own: each function that it exports is a tool, and nothing in it was written for that.

use std::time::Duration;

// What is generated has neither docs nor a narrow scope.
#[expect(missing_docs, unreachable_pub, reason = "it is generated")]
mod bindings {
    wit_bindgen::generate!({ world: "calc", path: "wit", pub_export_macro: true });
}

use bindings::exports::example::calc::calculator::{Fraction, Guest, Problem, Shape};

struct Calculator;

impl Guest for Calculator {
    fn add(a: Fraction, b: Fraction) -> Result<Fraction, Problem> {
        let (Some(left), Some(right), Some(denominator)) = (
            a.numerator.checked_mul(b.denominator),
            b.numerator.checked_mul(a.denominator),
            a.denominator.checked_mul(b.denominator),
        ) else {
            return Err(Problem::Overflow("a product".to_owned()));
        };
        let numerator = left
            .checked_add(right)
            .ok_or_else(|| Problem::Overflow("the sum".to_owned()))?;
        match common(numerator.unsigned_abs(), denominator.unsigned_abs()) {
            _ if denominator == 0 => Err(Problem::DivisionByZero),
            divisor => Ok(Fraction {
                numerator: numerator / divisor,
                denominator: denominator / divisor,
            }),
        }
    }

    fn area(shape: Shape) -> f64 {
        match shape {
            Shape::Circle(radius) => std::f64::consts::PI * radius * radius,
            Shape::Rectangle((width, height)) => width * height,
            Shape::Point => 0.0,
        }
    }

    fn mean(values: Vec<f64>, weights: Option<Vec<f64>>) -> Option<f64> {
        let weight = |index: usize| match &weights {
            Some(weights) => weights.get(index).copied().unwrap_or(0.0),
            None => 1.0,
        };
        let weighed = values.iter().enumerate();
        let (sum, all) = weighed.fold((0.0, 0.0), |(sum, all), (index, value)| {
            (sum + value * weight(index), all + weight(index))
        });
        (all != 0.0).then(|| sum / all)
    }

    fn primes(below: u32, pause_ms: Option<u32>) -> Vec<u32> {
        let mut primes: Vec<u32> = Vec::new();
        for number in 2..below {
            let mut smaller = primes.iter().take_while(|prime| *prime * *prime <= number);
            if smaller.all(|prime| number % prime != 0) {
                std::thread::sleep(Duration::from_millis(pause_ms.unwrap_or(0).into()));
                primes.push(number);
            }
        }
        primes
    }
}

/// The greatest number that divides both.
fn common(a: u64, b: u64) -> i64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1).max(1)
}

bindings::export!(Calculator with_types_in bindings);
