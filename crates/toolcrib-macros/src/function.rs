//! The fn below `#[tool]`: what of its signature matters, and what it may not be.

use syn::spanned::Spanned;
use syn::{Error, FnArg, ItemFn, ReturnType, Safety, Signature, Type};

/// One parameter of the fn, in the order written.
pub(crate) enum Parameter<'a> {
    /// The arguments type.
    Arguments(&'a Type),
    /// `&CallContext`.
    Context,
}

/// What of a signature the generated code needs.
pub(crate) struct Function<'a> {
    pub(crate) parameters: Vec<Parameter<'a>>,
    pub(crate) output: &'a Type,
}

impl Function<'_> {
    /// The arguments type, if the fn takes one.
    pub(crate) fn arguments(&self) -> Option<&Type> {
        self.parameters.iter().find_map(|parameter| match parameter {
            Parameter::Arguments(ty) => Some(*ty),
            Parameter::Context => None,
        })
    }
}

/// Reads the signature; everything that is wrong with it is reported at once.
pub(crate) fn read(item: &ItemFn) -> syn::Result<Function<'_>> {
    let signature = &item.sig;
    let mut problems = Problems(None);
    check_qualifiers(signature, &mut problems);
    let parameters = read_parameters(signature, &mut problems);
    let output = match &signature.output {
        ReturnType::Type(_, ty) => {
            if let Type::ImplTrait(_) = **ty {
                problems.push(&**ty, "a tool names the type it returns: `impl Trait` has no name");
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
        // Unreachable: no output type is a problem; still an answer rather than a panic.
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
            FnArg::Typed(input) => &*input.ty,
        };
        let is_context = names_context(ty);
        let taken =
            parameters.iter().any(|known| matches!(known, Parameter::Context) == is_context);
        match (is_context, taken) {
            (true, false) => parameters.push(Parameter::Context),
            (false, false) => {
                if let Type::ImplTrait(_) = ty {
                    problems.push(ty, "a tool's arguments are one concrete type, not `impl Trait`");
                }
                parameters.push(Parameter::Arguments(ty));
            }
            (true, true) => problems.push(input, "a tool takes one `&CallContext`"),
            (false, true) => problems.push(
                input,
                "a tool takes one arguments type and, if it likes, a `&CallContext`: make these \
                 parameters the fields of one struct that derives `Deserialize` and `JsonSchema`",
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

/// Whether a type is a reference to something called `CallContext`.
fn names_context(ty: &Type) -> bool {
    let Type::Reference(reference) = ty else { return false };
    let Type::Path(path) = &*reference.elem else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == "CallContext")
}

/// All that is wrong, as one error with a span each.
struct Problems(Option<Error>);

impl Problems {
    fn push(&mut self, at: &(impl Spanned + quote::ToTokens), message: &str) {
        let error = Error::new_spanned(at, message);
        match &mut self.0 {
            Some(known) => known.combine(error),
            none => *none = Some(error),
        }
    }
}
