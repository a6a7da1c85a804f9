# Conversion
def totype(p; message): if p then . else fromjson | if p then . else error(message) end end;
def tonumber: totype(isnumber; "cannot be read as a number");
def toboolean: totype(isboolean; "cannot be read as a boolean");
def toarray: if isarray then . else [.] end;

# Arrays and objects
def transpose: [range([.[] | length] | max // 0) as $i | [.[][$i]]];
def in(xs): . as $x | xs | has($x);
def inside(xs): . as $x | xs | contains($x);
def index($i): indices($i)[0];
def rindex($i): indices($i)[-1:][0];
def IN(s): any(s == .; .);
def IN(source; s): any(source == s; .);
def INDEX(stream; f): reduce stream as $row ({}; .[$row | f | tostring] |= $row);
def INDEX(f): INDEX(.[]; f);
def leaf_paths: paths(scalars);

# Text
def trimstr($s): ltrimstr($s) | rtrimstr($s);
def ascii: [.] | implode;

# Formats
def @json: tojson;
def @csv: [.[] | if . == null then "" elif isstring then "\"" + (split("\"") | join("\"\"")) + "\"" elif isnumber or isboolean then tojson else error("an array or object is not a CSV field") end] | join(",");
def @tsv: [.[] | if . == null then "" elif isstring then (split("\\") | join("\\\\") | split("\t") | join("\\t") | split("\n") | join("\\n") | split("\r") | join("\\r")) elif isnumber or isboolean then tojson else error("an array or object is not a TSV field") end] | join("\t");
