//! Reads and checks the signature of the function below `#[tool]`.

use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, FnArg, ItemFn, LitStr, Meta, Pat, PatType, ReturnType, Safety, Signature,
    Type,
};

/// One parameter of the function, in order.
pub(crate) enum Parameter<'a> {
    /// The arguments type.
    Arguments(&'a Type),
    /// `&CallContext`.
    Context,
    /// `#[service]`: a service of the host, found by type or by this name.
    Service { ty: &'a Type, name: Option<String> },
    /// `#[context("key")]`: a context value.
    Value { ty: &'a Type, parameter: String, key: String, required: bool },
    /// `#[state]`: state that the tool keeps between calls; the type behind the reference.
    State(&'a Type),
}

/// Attributes of parameters that the compiler does not know and must not see.
const MARKS: [&str; 3] = ["service", "context", "state"];

/// The parts of a signature that the generated code needs.
pub(crate) struct Function<'a> {
    pub(crate) parameters: Vec<Parameter<'a>>,
    pub(crate) output: &'a Type,
}

impl Function<'_> {
    /// The arguments type, if the function has one.
    pub(crate) fn arguments(&self) -> Option<&Type> {
        self.parameters.iter().find_map(|parameter| match parameter {
            Parameter::Arguments(ty) => Some(*ty),
            _ => None,
        })
    }

    /// The types of the tool's state, in order.
    pub(crate) fn states(&self) -> Vec<&Type> {
        let states = self.parameters.iter().filter_map(|parameter| match parameter {
            Parameter::State(ty) => Some(*ty),
            _ => None,
        });
        states.collect()
    }
}

/// The function without the attributes of its parameters.
pub(crate) fn without_marks(item: &ItemFn) -> ItemFn {
    let mut item = item.clone();
    for input in &mut item.sig.inputs {
        if let FnArg::Typed(input) = input {
            input.attrs.retain(|attribute| mark_of(attribute).is_none());
        }
    }
    item
}

fn mark_of(attribute: &Attribute) -> Option<&'static str> {
    MARKS.into_iter().find(|mark| attribute.path().is_ident(mark))
}

/// Reads the signature, and reports all its errors at once.
pub(crate) fn read(item: &ItemFn) -> syn::Result<Function<'_>> {
    let signature = &item.sig;
    let mut problems = Problems(None);
    check_qualifiers(signature, &mut problems);
    let parameters = read_parameters(signature, &mut problems);
    let output = match &signature.output {
        ReturnType::Type(_, ty) => {
            if let Type::ImplTrait(_) = **ty {
                problems.push(&**ty, "a tool must name its return type: `impl Trait` has no name");
            }
            Some(&**ty)
        }
        ReturnType::Default => {
            problems.push(
                &signature.ident,
                "a tool returns what the model reads: add a return type, for example `-> String`",
            );
            None
        }
    };
    match (problems.0, output) {
        (None, Some(output)) => Ok(Function { parameters, output }),
        (Some(error), _) => Err(error),
        // Unreachable, because a missing output type is an error; this avoids a panic.
        (None, None) => Err(Error::new(signature.ident.span(), "a tool has a return type")),
    }
}

fn check_qualifiers(signature: &Signature, problems: &mut Problems) {
    if let Safety::Unsafe(token) = &signature.safety {
        problems.push(token, "a tool is called with what a model sent: it cannot be `unsafe`");
    }
    if let Some(abi) = &signature.abi {
        problems.push(abi, "a tool is a plain Rust fn: remove the `extern`");
    }
    let generics = &signature.generics;
    if !generics.params.is_empty() || generics.where_clause.is_some() {
        problems.push(
            generics,
            "a tool is called with one known type: remove the generics (elided lifetimes, as in \
             `Args<'_>`, are fine)",
        );
    }
    if let Some(variadic) = &signature.variadic {
        problems.push(variadic, "a tool cannot be variadic");
    }
}

fn read_parameters<'a>(signature: &'a Signature, problems: &mut Problems) -> Vec<Parameter<'a>> {
    let mut parameters: Vec<Parameter<'a>> = Vec::new();
    for input in &signature.inputs {
        let ty = match input {
            FnArg::Receiver(receiver) => {
                problems.push(
                    receiver,
                    "a tool is a free fn: state lives in what the host shares, not in `self` \
                     (for a stateful tool implement `Tool`)",
                );
                continue;
            }
            FnArg::Typed(input) => {
                let marks: Vec<_> = input.attrs.iter().filter(|a| mark_of(a).is_some()).collect();
                match marks.as_slice() {
                    [] => &*input.ty,
                    [mark] => {
                        match marked(input, mark) {
                            Ok(parameter) => parameters.push(parameter),
                            Err(error) => problems.add(error),
                        }
                        continue;
                    }
                    [_, second, ..] => {
                        problems.push(second, "a parameter can have only one source");
                        continue;
                    }
                }
            }
        };
        let is_context = names_context(ty);
        let taken = parameters.iter().any(|known| match known {
            Parameter::Context => is_context,
            Parameter::Arguments(_) => !is_context,
            _ => false,
        });
        match (is_context, taken) {
            (true, false) => parameters.push(Parameter::Context),
            (false, false) => {
                if let Type::ImplTrait(_) = ty {
                    problems.push(ty, "a tool's arguments are one concrete type, not `impl Trait`");
                }
                parameters.push(Parameter::Arguments(ty));
            }
            (true, true) => problems.push(input, "a tool takes at most one `&CallContext`"),
            (false, true) => problems.push(
                input,
                "a tool takes one arguments type and an optional `&CallContext`: make these \
                 parameters the fields of one struct that derives `Deserialize` and `JsonSchema`, \
                 or mark parameters that the host fills in: `#[service]`, `#[context(\"key\")]`, \
                      `#[state]`",
            ),
        }
        if let Type::Path(path) = ty
            && path.path.segments.last().is_some_and(|last| last.ident == "CallContext")
        {
            problems.push(ty, "the context is borrowed: write `&CallContext`");
        }
    }
    parameters
}

/// A parameter with an attribute that says where its value comes from.
fn marked<'a>(input: &'a PatType, mark: &Attribute) -> syn::Result<Parameter<'a>> {
    let ty = &*input.ty;
    let text = match &mark.meta {
        Meta::Path(_) => None,
        Meta::List(_) => Some(mark.parse_args::<LitStr>()?),
        Meta::NameValue(meta) => {
            return Err(Error::new_spanned(meta, "write the name in parentheses: `(\"…\")`"));
        }
    };
    match (mark_of(mark), text) {
        (Some("service"), name) => Ok(Parameter::Service { ty, name: name.map(|n| n.value()) }),
        (Some("state"), None) => match ty {
            Type::Reference(reference) if reference.mutability.is_none() => {
                Ok(Parameter::State(&reference.elem))
            }
            _ => Err(Error::new_spanned(
                ty,
                "calls share the tool's state: take `&T`, with `T: Default + Send + Sync`, and an \
                 atomic or a lock for what changes",
            )),
        },
        (Some("state"), Some(text)) => {
            Err(Error::new_spanned(text, "the state has no name: write `#[state]`"))
        }
        (_, Some(key)) => match &*input.pat {
            Pat::Ident(pattern) => Ok(Parameter::Value {
                ty,
                parameter: pattern.ident.unraw().to_string(),
                key: key.value(),
                required: !is_option(ty),
            }),
            other => Err(Error::new_spanned(other, "give the parameter a plain name")),
        },
        (_, None) => Err(Error::new_spanned(mark, "name the context value: `#[context(\"key\")]`")),
    }
}

/// Whether a type is written `Option<…>`.
fn is_option(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == "Option")
}

/// Whether a type is a reference to something called `CallContext`.
fn names_context(ty: &Type) -> bool {
    let Type::Reference(reference) = ty else { return false };
    let Type::Path(path) = &*reference.elem else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == "CallContext")
}

/// All errors as one, with a span each.
struct Problems(Option<Error>);

impl Problems {
    fn push(&mut self, at: &(impl Spanned + quote::ToTokens), message: &str) {
        self.add(Error::new_spanned(at, message));
    }

    fn add(&mut self, error: Error) {
        match &mut self.0 {
            Some(known) => known.combine(error),
            none => *none = Some(error),
        }
    }
}
