//! Generates the code that registers a function.

use std::time::Duration;

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Error, Ident, Index, ItemFn, Path};

use crate::function::{Function, Parameter};
use crate::settings::{Inject, Settings, check_name};
use crate::{contract, description, function};

/// The function as written, followed by its registration or by the errors.
///
/// The function stays in either case, so that one error does not also break all its callers.
pub(crate) fn expand(settings: TokenStream, item: &TokenStream) -> TokenStream {
    let Ok(function) = syn::parse2::<ItemFn>(item.clone()) else {
        let error = Error::new(Span::call_site(), "`#[tool]` must be on a free fn with a body")
            .into_compile_error();
        return quote!(#item #error);
    };
    let generated = registration(settings, &function).unwrap_or_else(Error::into_compile_error);
    let function = function::without_marks(&function);
    // A tool takes its arguments by value because of this attribute.
    quote!(#[allow(clippy::needless_pass_by_value)] #function #generated)
}

fn registration(settings: TokenStream, item: &ItemFn) -> syn::Result<TokenStream> {
    let function = function::read(item);
    let settings = syn::parse2::<Settings>(settings);
    let description = description::description(&item.attrs).ok_or_else(|| {
        Error::new(
            item.sig.ident.span(),
            format!(
                "the tool `{}` has no description: write a doc comment that tells a model when \
                 to call it",
                item.sig.ident
            ),
        )
    });
    let (function, settings, description) = all(function, settings, description)?;
    let name = match &settings.name {
        Some(name) => name.clone(),
        None => own_name(&item.sig.ident)?,
    };
    let contract = contract::contract()?;
    let definition = definition(&name, &description, &settings, &function, item, &contract);
    let states: Vec<_> =
        function.states().iter().map(|_| quote!(::core::default::Default::default())).collect();
    let body = body(&function, &settings, item, &contract);
    let always = || quote!(|| ::core::result::Result::Ok(()));
    let available = settings.available.as_ref().map_or_else(always, |path| quote!(#path));
    // If the function is configured out, so is its registration.
    let cfgs = item.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    let line = u32::try_from(item.sig.ident.span().unwrap().line()).unwrap_or(u32::MAX);
    Ok(quote! {
        #(#cfgs)*
        const _: () = {
            #definition
            #body
            #contract::__private::inventory::submit! {
                #contract::NativeTool {
                    name: #name,
                    krate: ::core::env!("CARGO_PKG_NAME"),
                    file: ::core::file!(),
                    line: #line,
                    definition: __definition,
                    body: || ::std::sync::Arc::new(__Body(#(#states,)*)),
                    available: #available,
                }
            }
        };
    })
}

/// The function's name as the tool's name.
fn own_name(ident: &Ident) -> syn::Result<String> {
    let name = ident.unraw().to_string();
    match check_name(&name) {
        Ok(()) => Ok(name),
        Err(problem) => Err(Error::new(ident.span(), format!("{problem}; set `name = \"…\"`"))),
    }
}

/// All three, or all of their errors.
fn all<A, B, C>(a: syn::Result<A>, b: syn::Result<B>, c: syn::Result<C>) -> syn::Result<(A, B, C)> {
    match (a, b, c) {
        (Ok(a), Ok(b), Ok(c)) => Ok((a, b, c)),
        (a, b, c) => {
            let errors = [a.err(), b.err(), c.err()].into_iter().flatten();
            let combined = errors.reduce(|mut known, next| {
                known.combine(next);
                known
            });
            // One of the three failed, because the arm above handles success.
            Err(combined.unwrap_or_else(|| Error::new(Span::call_site(), "invalid tool")))
        }
    }
}

/// The span for compiler errors. Generated names keep their own hygiene, even if a macro of the caller wrote the
/// function.
fn at(written: &impl Spanned) -> Span {
    Span::call_site().located_at(written.span())
}

/// `fn __definition() -> Result<ToolDefinition, DefinitionError>`.
fn definition(
    name: &str,
    description: &TokenStream,
    settings: &Settings,
    function: &Function<'_>,
    item: &ItemFn,
    contract: &TokenStream,
) -> TokenStream {
    let input_schema = function.arguments().map(|ty| {
        let schema = quote_spanned!(at(ty)=> #contract::schema_for::<#ty>());
        quote!(.input_schema(#schema))
    });
    let output = function.output;
    let output_schema =
        quote_spanned!(at(output)=> <#output as #contract::IntoOutcome>::output_schema());
    let texts = [
        ("title", &settings.title),
        ("category", &settings.category),
        ("version", &settings.version),
    ];
    let texts = texts.into_iter().filter_map(|(setter, value)| {
        let setter = format_ident!("{setter}");
        value.as_ref().map(|value| quote!(.#setter(#value)))
    });
    let lists = [("tags", &settings.tags), ("empty_as_absent", &settings.empty_as_absent)];
    let lists =
        lists.into_iter().filter(|(_, values)| !values.is_empty()).map(|(setter, values)| {
            let setter = format_ident!("{setter}");
            quote!(.#setter(::std::vec![#(::std::string::String::from(#values)),*]))
        });
    let switches = settings.switches.iter().map(|(setter, on)| quote!(.#setter(#on)));
    let blocking = settings.blocking.unwrap_or(item.sig.asyncness.is_none());
    let timeout = settings.timeout.map(|limit| {
        let limit = duration(limit);
        quote!(.timeout(#limit))
    });
    let policies = policies(settings, contract);
    let declared = settings.inject.iter().map(|inject| injection(inject, contract));
    let marked = function.parameters.iter().filter_map(|parameter| match parameter {
        Parameter::Value { parameter, key, required, .. } => {
            let (parameter, context_key) = (parameter.clone(), key.clone());
            Some(injection(&Inject { parameter, context_key, required: *required }, contract))
        }
        _ => None,
    });
    let injections: Vec<_> = declared.chain(marked).collect();
    let injections =
        (!injections.is_empty()).then(|| quote!(.injections(::std::vec![#(#injections),*])));
    // The texts were parsed when this code was generated, so none becomes `null` here; `build` would refuse that.
    let examples = &settings.examples;
    let examples = (!examples.is_empty()).then(|| {
        quote! {
            .input_examples(::std::vec![#(
                #contract::__private::serde_json::from_str(#examples).unwrap_or_default()
            ),*])
        }
    });
    quote! {
        fn __definition() -> ::core::result::Result<
            #contract::ToolDefinition,
            #contract::DefinitionError,
        > {
            let builder = #contract::ToolDefinition::builder(#name)
                .description(#description)
                .blocking(#blocking)
                #input_schema
                #(#texts)*
                #(#lists)*
                #(#switches)*
                #timeout
                #policies
                #injections
                #examples;
            match #output_schema {
                ::core::option::Option::Some(schema) => builder.output_schema(schema),
                ::core::option::Option::None => builder,
            }
            .build()
        }
    }
}

/// The setters for limits, caching, approval and the like.
fn policies(settings: &Settings, contract: &TokenStream) -> TokenStream {
    let output_chars = settings.output_chars.map(|count| quote!(.output_chars(#count)));
    let max_concurrent = settings.max_concurrent.map(|count| quote!(.max_concurrent(#count)));
    let rate = settings.rate.as_ref().map(|(calls, constructor)| {
        quote! {
            // More than zero, as checked when this code was generated.
            .rate(#contract::RateLimit::#constructor(
                ::core::num::NonZeroU32::new(#calls).unwrap_or(::core::num::NonZeroU32::MIN),
            ))
        }
    });
    let cache = settings.cache.map(|cached| {
        let ttl = cached.ttl.map(duration).map(|ttl| quote!(.with_ttl(#ttl)));
        let shared = cached.shared.then(|| quote!(.with_shared(true)));
        quote!(.cache(#contract::CachePolicy::new() #ttl #shared))
    });
    let dedupe = settings.dedupe.as_ref().map(|word| quote!(.dedupe(#contract::Dedupe::#word)));
    let approval =
        settings.approval.as_ref().map(|word| quote!(.approval(#contract::Approval::#word)));
    let task = settings.task.as_ref().map(|word| quote!(.task(#contract::TaskMode::#word)));
    let retry = settings.retry.map(|max| quote!(.retry(#contract::RetryPolicy::new(#max))));
    let refresh_every = settings.refresh_every.map(|period| {
        let period = duration(period);
        quote!(.refresh_every(#period))
    });
    let (reads, writes) = (&settings.reads, &settings.writes);
    let resources = (!reads.is_empty() || !writes.is_empty()).then(
        || quote!(.resources(#contract::Resources::new() #(.reads(#reads))* #(.writes(#writes))*)),
    );
    quote! {
        #output_chars #max_concurrent #rate #cache #dedupe #approval #task #retry #refresh_every
        #resources
    }
}

fn injection(inject: &Inject, contract: &TokenStream) -> TokenStream {
    let Inject { parameter, context_key, required } = inject;
    let optional = (!required).then(|| quote!(.optional()));
    quote!(#contract::Injection::new(#parameter, #context_key) #optional)
}

/// `struct __Body`, which implements `Tool`, with its state.
fn body(
    function: &Function<'_>,
    settings: &Settings,
    item: &ItemFn,
    contract: &TokenStream,
) -> TokenStream {
    let name = &item.sig.ident;
    let parse = function
        .arguments()
        .map(|ty| quote_spanned!(at(ty)=> let __args = __arguments.parse::<#ty>()?;));
    let mut states = 0_usize;
    let values = function.parameters.iter().map(|parameter| match parameter {
        Parameter::Arguments(_) => quote!(__args),
        Parameter::Context => quote!(__cx),
        Parameter::Service { ty, name } => {
            let name = name.as_ref().map_or_else(
                || quote!(::core::option::Option::None),
                |name| quote!(::core::option::Option::Some(#name)),
            );
            quote_spanned! {at(ty)=>
                <#ty as #contract::__private::FromServices>::from_services(__cx, #name)?
            }
        }
        Parameter::Value { ty, parameter, .. } => quote_spanned! {at(ty)=>
            #contract::__private::from_context::<#ty>(__cx, #parameter)?
        },
        Parameter::State(_) => {
            let index = Index::from(states);
            states += 1;
            quote!(&self.#index)
        }
    });
    let values: Vec<_> = values.collect();
    let states = function.states();
    let wait = item.sig.asyncness.map(|_| quote!(.await));
    let output = function.output;
    let outcome =
        quote_spanned!(at(output)=> <#output as #contract::IntoOutcome>::into_outcome(__output));
    let validates = settings.validate.is_some();
    let validate = settings.validate.as_ref().map(|check| validate(check, function, contract));
    let plan = settings.plan.as_ref().map(|plan| planned(plan, function, contract));
    let preview = settings.preview.as_ref().map(|preview| previewed(preview, contract));
    let refresh = settings.refresh.as_ref().map(|refresh| refreshed(refresh, contract));
    let wind_down = settings.wind_down.map(|time| {
        let time = duration(time);
        quote! {
            fn wind_down(&self) -> ::core::time::Duration {
                #time
            }
        }
    });
    quote! {
        struct __Body(#(#states,)*);

        #[automatically_derived]
        impl #contract::Tool for __Body {
            fn call<'a>(
                &'a self,
                __arguments: #contract::Arguments,
                __cx: &'a #contract::CallContext,
            ) -> #contract::BoxFuture<
                'a,
                ::core::result::Result<#contract::ToolOutcome, #contract::ToolError>,
            > {
                ::std::boxed::Box::pin(async move {
                    #parse
                    let __output = #name(#(#values),*) #wait;
                    #outcome
                })
            }

            #validate

            fn validates(&self) -> bool {
                #validates
            }

            #plan

            #preview

            #refresh

            #wind_down
        }
    }
}

/// A duration as an expression.
fn duration(time: Duration) -> TokenStream {
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    quote!(::core::time::Duration::from_millis(#millis))
}

/// `Tool::plan` with the author's function.
fn planned(plan: &Path, function: &Function<'_>, contract: &TokenStream) -> TokenStream {
    let (parse, call) = asked(plan, function);
    quote! {
        fn plan(
            &self,
            __arguments: &#contract::Arguments,
            __cx: &#contract::CallContext,
        ) -> ::core::result::Result<
            ::core::option::Option<#contract::Plan>,
            #contract::ToolError,
        > {
            #parse
            #call.map(::core::option::Option::Some)
        }
    }
}

/// `Tool::preview` with the author's function.
fn previewed(preview: &Path, contract: &TokenStream) -> TokenStream {
    let call = quote_spanned!(at(preview)=> #preview(__partial));
    quote! {
        fn preview(
            &self,
            __partial: &#contract::PartialArguments<'_>,
        ) -> ::core::option::Option<#contract::StatusUpdate> {
            #call
        }

        fn previews(&self) -> bool {
            true
        }
    }
}

/// `Tool::refresh` with the author's function.
fn refreshed(refresh: &Path, contract: &TokenStream) -> TokenStream {
    let call = quote_spanned!(at(refresh)=> #refresh(__current).await);
    quote! {
        fn refresh<'a>(
            &'a self,
            __current: &'a #contract::ToolDefinition,
        ) -> #contract::BoxFuture<
            'a,
            ::core::result::Result<
                ::core::option::Option<#contract::ToolDefinition>,
                #contract::ToolError,
            >,
        > {
            ::std::boxed::Box::pin(async move { #call })
        }
    }
}

/// Code that parses the arguments, and code that calls the author's function with them.
fn asked(path: &Path, function: &Function<'_>) -> (TokenStream, TokenStream) {
    let (parse, arguments) = match function.arguments() {
        Some(ty) => {
            (quote_spanned!(at(ty)=> let __args = __arguments.parse::<#ty>()?;), quote!(&__args,))
        }
        None => (TokenStream::new(), TokenStream::new()),
    };
    (parse, quote_spanned!(at(path)=> #path(#arguments __cx)))
}

/// `Tool::validate` with the author's function.
fn validate(check: &Path, function: &Function<'_>, contract: &TokenStream) -> TokenStream {
    let (parse, call) = asked(check, function);
    quote! {
        fn validate<'a>(
            &'a self,
            __arguments: &'a #contract::Arguments,
            __cx: &'a #contract::CallContext,
        ) -> #contract::BoxFuture<'a, ::core::result::Result<(), #contract::ToolError>> {
            ::std::boxed::Box::pin(async move {
                #parse
                #call
            })
        }
    }
}
