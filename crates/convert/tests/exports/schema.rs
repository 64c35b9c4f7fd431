//! Checks a document against a JSON schema, as far as speedscope's schema uses the language (draft 7).

use serde_json::Value;

/// The first place of `document` that breaks `schema`, and how.
pub fn check(schema: &Value, document: &Value) -> Result<(), String> {
    check_at(schema, schema, document, "$")
}

fn check_at(root: &Value, schema: &Value, value: &Value, path: &str) -> Result<(), String> {
    for (keyword, rule) in schema.as_object().unwrap() {
        let holds = match keyword.as_str() {
            "$schema" | "title" | "definitions" => Ok(()),
            "$ref" => check_at(root, resolve(root, rule), value, path),
            "type" => has_type(rule, value),
            "const" => (rule == value).then_some(()).ok_or_else(|| format!("is not {rule}")),
            "enum" => {
                rule.as_array().unwrap().contains(value).then_some(()).ok_or_else(|| format!("is none of {rule}"))
            }
            "anyOf" => any_of(root, rule, value, path),
            "required" => required(rule, value),
            "properties" => rule.as_object().unwrap().iter().try_for_each(|(name, schema)| match value.get(name) {
                Some(value) => check_at(root, schema, value, &format!("{path}.{name}")),
                None => Ok(()),
            }),
            "items" => value
                .as_array()
                .into_iter()
                .flatten()
                .enumerate()
                .try_for_each(|(index, value)| check_at(root, rule, value, &format!("{path}[{index}]"))),
            unknown => panic!("the schema uses `{unknown}`, which is not checked here"),
        };
        holds.map_err(|error| if error.starts_with('$') { error } else { format!("{path} {error}") })?;
    }
    Ok(())
}

fn resolve<'a>(root: &'a Value, reference: &Value) -> &'a Value {
    let name = reference.as_str().unwrap().strip_prefix("#/definitions/").unwrap();
    &root["definitions"][name]
}

fn has_type(rule: &Value, value: &Value) -> Result<(), String> {
    let holds = match rule.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        other => panic!("the schema uses type `{other}`, which is not checked here"),
    };
    holds.then_some(()).ok_or_else(|| format!("is no {rule}"))
}

fn any_of(root: &Value, rule: &Value, value: &Value, path: &str) -> Result<(), String> {
    let errors: Vec<String> =
        rule.as_array().unwrap().iter().map_while(|schema| check_at(root, schema, value, path).err()).collect();
    if errors.len() < rule.as_array().unwrap().len() { Ok(()) } else { Err(errors.join(" and ")) }
}

fn required(rule: &Value, value: &Value) -> Result<(), String> {
    let missing = rule.as_array().unwrap().iter().find(|name| value.get(name.as_str().unwrap()).is_none());
    missing.map_or(Ok(()), |name| Err(format!("lacks {name}")))
}
