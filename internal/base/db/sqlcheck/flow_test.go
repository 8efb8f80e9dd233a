package sqlcheck

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// sinks are the methods of libraries whose argument becomes SQL, with its position.
var sinks = map[string]map[string]int{
	"github.com/uptrace/bun": {
		"NewRaw": 0, "Where": 0, "WhereOr": 0, "Having": 0, "Join": 0, "JoinOn": 0, "JoinOnOr": 0, "ColumnExpr": 0, "TableExpr": 0,
		"ModelTableExpr": 0, "OrderExpr": 0, "GroupExpr": 0, "DistinctOn": 0, "Set": 0, "SetColumn": 1, "Value": 1, "Returning": 0, "On": 0,
		"For": 0, "Raw": 0, "WithRaw": 1, "ExecContext": 1, "QueryContext": 1, "QueryRowContext": 1, "PrepareContext": 1,
		"Exec": 0, "Query": 0, "QueryRow": 0, "Prepare": 0,
	},
	"database/sql": {
		"ExecContext": 1, "QueryContext": 1, "QueryRowContext": 1, "PrepareContext": 1, "Exec": 0, "Query": 0, "QueryRow": 0, "Prepare": 0,
	},
	"github.com/jackc/pgx/v5":        {"Exec": 1, "Query": 1, "QueryRow": 1, "Prepare": 2, "Queue": 0},
	"github.com/jackc/pgx/v5/pgconn": {"Exec": 1, "ExecParams": 1, "Prepare": 2},
}

// combine are functions whose result consists of their arguments.
var combine = []string{
	"strings.Join", "strings.Repeat", "strings.TrimSuffix", "strings.TrimPrefix", "strings.TrimSpace", "strings.ReplaceAll", "strings.Replace",
	"strings.ToUpper", "strings.ToLower", "strings.Fields", "strings.Split", "strings.Cut", "strings.NewReplacer", "fmt.Sprintf", "fmt.Sprint",
	"cmp.Or", "slices.Concat", "slices.Clone", "slices.Sorted", "slices.Values", "maps.Keys", "maps.Clone",
	"(*strings.Builder).String", "(*strings.Replacer).Replace", "(*regexp.Regexp).ReplaceAllString",
}

// harmless are functions that quote their arguments, or whose result is a number.
var harmless = []string{
	"strconv.Itoa", "strconv.FormatInt", "strconv.Quote", "crypto/rand.Text", "(github.com/jackc/pgx/v5.Identifier).Sanitize",
	"(github.com/uptrace/bun/schema.QueryAppender).AppendQuery",
}

// flow follows texts that become SQL back to where they come from. It is coarse: it knows neither
// order nor branches, and of a list, a map or a struct only what is ever put into any.
type flow struct {
	packages []*packages.Package
	trusted  map[string]string // functions and fields that are taken for constant, with the reason
	values   map[any][]place   // what a variable, parameter, field or result is set to
	literals map[string][]*ast.FuncLit
	called   map[*ast.Ident]bool // names of functions in calls and on the left; others are values
	asValue  map[*types.Var]bool
	filled   map[any]bool             // by reflection
	own      map[*ast.FuncLit]bool    // set to a variable
	calls    map[*types.Var][][]place // of variables
	byValue  map[string][]*types.Signature
	methods  map[string][]*types.Func
	args     map[string][][]place // of calls of function values, by signature
	seen     map[any]bool
	found    map[string]finding // by position
	way      []string           // from the sink to what is followed
}

// place is an expression, with the types of its file. nth is a result of a call with several.
type place struct {
	e    ast.Expr
	info *types.Info
	nth  int
	keys bool // of a map
}

// finding is a text that is not constant.
type finding struct {
	why, sink string
	way       []string // from the sink
}

// result is a result of a function.
type result struct {
	of any // *types.Func or *ast.FuncLit
	n  int
}

// keysOf are the keys of the map in a variable.
type keysOf struct{ of any }

func newFlow(all []*packages.Package, trusted map[string]string) *flow {
	f := &flow{
		packages: all, trusted: trusted, values: map[any][]place{}, literals: map[string][]*ast.FuncLit{}, called: map[*ast.Ident]bool{},
		asValue: map[*types.Var]bool{}, filled: map[any]bool{}, own: map[*ast.FuncLit]bool{}, calls: map[*types.Var][][]place{},
		byValue: map[string][]*types.Signature{}, methods: map[string][]*types.Func{}, args: map[string][][]place{},
		seen: map[any]bool{}, found: map[string]finding{},
	}
	for _, p := range all {
		for _, file := range p.Syntax {
			f.read(file, p.TypesInfo, nil)
		}
	}
	f.connect()
	return f
}

// connect passes the arguments of calls through variables and interfaces to whatever can be called.
func (f *flow) connect() {
	for v, all := range f.calls {
		sig, _ := v.Type().Underlying().(*types.Signature)
		lits := f.closures(v)
		for _, args := range all {
			for _, lit := range lits {
				f.pass(lit.info.TypeOf(lit.e).(*types.Signature), args)
			}
			if lits == nil && sig != nil {
				f.args[shape(sig)] = append(f.args[shape(sig)], args)
			}
		}
	}
	for o, all := range f.values { // closures that are passed on
		if v, ok := o.(*types.Var); ok && f.closures(v) == nil {
			for _, p := range all {
				if lit, ok := p.e.(*ast.FuncLit); ok && f.own[lit] {
					sig := p.info.TypeOf(lit).(*types.Signature)
					f.literals[shape(sig)] = append(f.literals[shape(sig)], lit)
					f.byValue[shape(sig)] = append(f.byValue[shape(sig)], sig)
				}
			}
		}
	}
	for name, all := range f.byValue {
		for _, sig := range all {
			for _, args := range f.args[name] {
				f.pass(sig, args)
			}
		}
	}
	for name, all := range f.methods {
		for _, fn := range all {
			for _, args := range f.args[name] {
				f.pass(fn.Signature(), args)
			}
		}
	}
}

// closures are the functions that a variable is set to, if it is only ever called; nil = unknown.
func (f *flow) closures(v *types.Var) (all []place) {
	if f.asValue[v] || v.IsField() || v.Kind() == types.ParamVar {
		return nil
	}
	for _, p := range f.values[v] {
		if _, ok := p.e.(*ast.FuncLit); !ok {
			return nil
		}
		all = append(all, p)
	}
	return all
}

// object is what a name stands for, the same for all instances of a generic one.
func object(name *ast.Ident, info *types.Info) any {
	switch o := info.ObjectOf(name).(type) {
	case *types.Var:
		return o.Origin()
	case *types.Func:
		return o.Origin()
	}
	return nil
}

// target is the variable or field that an expression is, or is a part of.
func target(e ast.Expr, info *types.Info) any {
	switch x := e.(type) {
	case *ast.Ident:
		return object(x, info)
	case *ast.SelectorExpr:
		return object(x.Sel, info)
	case *ast.IndexExpr:
		return target(x.X, info)
	case *ast.StarExpr:
		return target(x.X, info)
	case *ast.ParenExpr:
		return target(x.X, info)
	case *ast.UnaryExpr:
		return target(x.X, info)
	case *ast.SliceExpr:
		return target(x.X, info)
	}
	return nil
}

func (f *flow) set(o any, p place) {
	if o != nil {
		f.values[o] = append(f.values[o], p)
	}
}

// read reads what a node sets. of is the function that it is in.
func (f *flow) read(n ast.Node, info *types.Info, of any) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.FuncDecl:
			fn := object(x.Name, info).(*types.Func)
			if fn.Signature().Recv() != nil {
				f.methods[method(fn)] = append(f.methods[method(fn)], fn)
			}
			f.body(x.Type, x.Body, info, fn)
			return false
		case *ast.FuncLit:
			sig := info.TypeOf(x).(*types.Signature)
			if !f.own[x] {
				f.literals[shape(sig)] = append(f.literals[shape(sig)], x)
				f.byValue[shape(sig)] = append(f.byValue[shape(sig)], sig)
			}
			f.body(x.Type, x.Body, info, x)
			return false
		case *ast.ReturnStmt:
			for i, e := range x.Results {
				f.set(result{of, i}, place{e: e, info: info})
			}
			if call, ok := first(x.Results).(*ast.CallExpr); ok && len(x.Results) == 1 {
				if several, ok := info.TypeOf(call).(*types.Tuple); ok {
					for i := 1; i < several.Len(); i++ {
						f.set(result{of, i}, place{e: call, info: info, nth: i})
					}
				}
			}
		case *ast.AssignStmt:
			for i, l := range x.Lhs {
				if name, ok := l.(*ast.Ident); ok {
					f.called[name] = true
					if lit, ok := x.Rhs[min(i, len(x.Rhs)-1)].(*ast.FuncLit); ok {
						f.own[lit] = true
					}
				}
				f.assign(target(l, info), x.Rhs, len(x.Lhs), i, info)
				if at, ok := l.(*ast.IndexExpr); ok {
					f.set(keysOf{target(at.X, info)}, place{e: at.Index, info: info})
				}
			}
		case *ast.ValueSpec:
			for i, name := range x.Names {
				f.assign(object(name, info), x.Values, len(x.Names), i, info)
			}
		case *ast.RangeStmt:
			if x.Key != nil {
				f.set(target(x.Key, info), place{e: x.X, info: info, keys: true})
			}
			if x.Value != nil {
				f.set(target(x.Value, info), place{e: x.X, info: info})
			}
		case *ast.CompositeLit:
			f.fields(x, info)
		case *ast.CallExpr:
			f.call(x, info)
		case *ast.Ident:
			switch o := object(x, info).(type) {
			case *types.Func:
				if !f.called[x] {
					f.byValue[shape(o.Signature())] = append(f.byValue[shape(o.Signature())], o.Signature())
				}
			case *types.Var:
				f.asValue[o] = f.asValue[o] || !f.called[x] && info.Uses[x] != nil
			}
		}
		return true
	})
}

func first(all []ast.Expr) ast.Expr {
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

// body reads the body of a function.
func (f *flow) body(t *ast.FuncType, body *ast.BlockStmt, info *types.Info, of any) {
	if body == nil {
		return
	}
	n := 0
	if t.Results != nil {
		for _, field := range t.Results.List {
			for _, name := range field.Names {
				f.set(result{of, n}, place{e: name, info: info})
				n++
			}
		}
	}
	f.read(body, info, of)
}

func (f *flow) assign(to any, from []ast.Expr, names, i int, info *types.Info) {
	switch {
	case len(from) == names:
		f.set(to, place{e: from[i], info: info})
		f.set(keysOf{to}, place{e: from[i], info: info, keys: true})
	case len(from) == 1:
		f.set(to, place{e: from[0], info: info, nth: i})
	}
}

func (f *flow) fields(x *ast.CompositeLit, info *types.Info) {
	t := info.TypeOf(x).Underlying()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem().Underlying()
	}
	s, ok := t.(*types.Struct)
	if !ok {
		return
	}
	for i, e := range x.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			f.assign(object(kv.Key.(*ast.Ident), info), []ast.Expr{kv.Value}, 1, 0, info)
		} else {
			f.assign(s.Field(i).Origin(), []ast.Expr{e}, 1, 0, info)
		}
	}
}

// shape is a function's type without the names of its parameters.
func shape(s *types.Signature) string {
	var all []string
	for v := range s.Params().Variables() {
		all = append(all, types.TypeString(v.Type(), nil))
	}
	for v := range s.Results().Variables() {
		all = append(all, types.TypeString(v.Type(), nil))
	}
	return fmt.Sprint(s.Params().Len(), s.Variadic(), all)
}

// called is the function or variable that is called; nil = something else.
func called(x *ast.CallExpr, info *types.Info) any {
	if lit, ok := ast.Unparen(x.Fun).(*ast.FuncLit); ok {
		return lit
	}
	name := nameOf(x)
	if name == nil {
		return nil
	}
	if b, ok := info.ObjectOf(name).(*types.Builtin); ok {
		return b
	}
	return object(name, info)
}

// nameOf is the name of what is called; nil = it has none.
func nameOf(x *ast.CallExpr) *ast.Ident {
	fun := ast.Unparen(x.Fun)
	switch y := fun.(type) {
	case *ast.IndexExpr:
		fun = y.X
	case *ast.IndexListExpr:
		fun = y.X
	}
	switch y := fun.(type) {
	case *ast.Ident:
		return y
	case *ast.SelectorExpr:
		return y.Sel
	}
	return nil
}

// call sets the parameters of what is called.
func (f *flow) call(x *ast.CallExpr, info *types.Info) {
	if name := nameOf(x); name != nil {
		f.called[name] = true
	}
	sig, ok := info.TypeOf(x.Fun).Underlying().(*types.Signature)
	for i, a := range x.Args {
		if p, isAddress := ast.Unparen(a).(*ast.UnaryExpr); isAddress && p.Op == token.AND && ok && sig.Params().Len() > 0 {
			to := sig.Params().At(min(i, sig.Params().Len()-1)).Type()
			if s, ok := to.(*types.Slice); ok && sig.Variadic() {
				to = s.Elem()
			}
			if i, ok := to.Underlying().(*types.Interface); ok && i.Empty() {
				f.fill(target(p.X, info), info.TypeOf(p.X))
			}
		}
	}
	if info.Types[x.Fun].IsType() {
		return
	}
	var args []place
	for _, a := range x.Args {
		args = append(args, place{e: a, info: info})
	}
	switch fn := called(x, info).(type) {
	case *types.Func:
		if sel, ok := ast.Unparen(x.Fun).(*ast.SelectorExpr); ok && strings.HasPrefix(fn.FullName(), "(*strings.Builder).Write") {
			f.set(target(sel.X, info), args[0])
		}
		if strings.HasPrefix(fn.FullName(), "fmt.Fprint") {
			for _, a := range args[1:] {
				f.set(target(x.Args[0], info), a)
			}
		}
		f.pass(fn.Signature(), args)
		if sel, ok := ast.Unparen(x.Fun).(*ast.SelectorExpr); ok && fn.Signature().Recv() != nil {
			f.set(fn.Signature().Recv(), place{e: sel.X, info: info})
		}
		if types.IsInterface(recv(fn)) {
			f.args[method(fn)] = append(f.args[method(fn)], args)
		}
	case *ast.FuncLit:
		f.pass(info.TypeOf(fn).(*types.Signature), args)
	case *types.Var:
		f.calls[fn] = append(f.calls[fn], args)
	default:
		if sig, ok := info.TypeOf(x.Fun).Underlying().(*types.Signature); ok {
			f.args[shape(sig)] = append(f.args[shape(sig)], args)
		}
	}
}

// fill notes that a value is read from outside: from rows, JSON or a form.
func (f *flow) fill(o any, t types.Type) {
	if o != nil {
		f.filled[o] = true
	}
	for deep := true; deep && t != nil; {
		switch x := types.Unalias(t).(type) {
		case *types.Slice:
			t = x.Elem()
		case *types.Pointer:
			t = x.Elem()
		default:
			deep = false
		}
	}
	if t == nil {
		return
	}
	if s, ok := t.Underlying().(*types.Struct); ok {
		for v := range s.Fields() {
			if !f.filled[v.Origin()] {
				f.filled[v.Origin()] = true
				f.fill(nil, v.Type())
			}
		}
	}
}

// method is the name of a method with its shape.
func method(fn *types.Func) string { return "method " + fn.Name() + " " + shape(fn.Signature()) }

func recv(fn *types.Func) types.Type {
	if r := fn.Signature().Recv(); r != nil {
		return r.Type()
	}
	return types.Typ[types.Invalid]
}

func (f *flow) pass(sig *types.Signature, args []place) {
	n := sig.Params().Len()
	for i, a := range args {
		if n > 0 {
			to := sig.Params().At(min(i, n-1)).Origin()
			f.set(to, a)
			f.set(keysOf{to}, place{e: a.e, info: a.info, keys: true})
		}
	}
}

// check follows every text that becomes SQL in files that are no tests.
func (f *flow) check() {
	for _, p := range f.packages {
		if strings.HasSuffix(p.PkgPath, "test") || strings.HasSuffix(p.PkgPath, "/bench") { // on databases of their own
			continue
		}
		for _, file := range p.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				if x, ok := n.(*ast.CallExpr); ok {
					f.sink(x, p)
				}
				return true
			})
		}
	}
}

func (f *flow) sink(x *ast.CallExpr, p *packages.Package) {
	if t := p.TypesInfo.Types[x.Fun]; t.IsType() {
		if types.TypeString(types.Unalias(t.Type), nil) == "github.com/uptrace/bun/schema.Safe" {
			f.follow(place{e: x.Args[0], info: p.TypesInfo}, f.at(x))
		}
		return
	}
	fn, ok := called(x, p.TypesInfo).(*types.Func)
	if !ok || fn.Pkg() == nil || fn.Signature().Recv() == nil || strings.HasSuffix(recv(fn).String(), ".Stmt") { // whose text is prepared
		return
	}
	if i, ok := sinks[fn.Pkg().Path()][fn.Name()]; ok && i < len(x.Args) && hasText(p.TypesInfo.TypeOf(x.Args[i])) {
		f.follow(place{e: x.Args[i], info: p.TypesInfo}, f.at(x))
	}
}

func (f *flow) at(n ast.Node) string {
	p := f.packages[0].Fset.Position(n.Pos())
	_, file, _ := strings.Cut(p.Filename, root+"/")
	return fmt.Sprintf("%s:%d", file, p.Line)
}

func (f *flow) bad(n ast.Node, sink, why string) {
	f.found[f.at(n)] = finding{why: why, sink: sink, way: slices.Clone(f.way)}
}

// hasText reports whether values of a type are texts or contain some. The fields of a struct are
// followed by themselves.
func hasText(t types.Type) bool {
	switch x := t.(type) {
	case nil, *types.Tuple, *types.TypeParam, *types.Signature:
		return true
	case *types.Named:
		if o := x.Obj(); o.Pkg() != nil && o.Pkg().Path() == "strings" || o.Name() == "Seq" {
			return true
		}
		return hasText(x.Underlying())
	case *types.Alias:
		return hasText(types.Unalias(x))
	case *types.Basic:
		return x.Info()&types.IsString != 0 || x.Kind() == types.Invalid
	case *types.Slice:
		b, ok := x.Elem().Underlying().(*types.Basic)
		return ok && b.Kind() == types.Byte || hasText(x.Elem())
	case *types.Array:
		return hasText(x.Elem())
	case *types.Map:
		return hasText(x.Elem())
	case *types.Pointer:
		return hasText(x.Elem())
	case *types.Interface:
		return x.Empty()
	}
	return false
}

// follow requires that a value consists of constants.
func (f *flow) follow(p place, sink string) {
	t := p.info.Types[p.e]
	if t.Value != nil || t.IsNil() {
		return
	}
	if p.keys {
		f.followKeys(p, sink)
		return
	}
	if t.Type != nil && !hasText(t.Type) {
		return
	}
	in := func(all ...ast.Expr) {
		for _, e := range all {
			f.follow(place{e: e, info: p.info}, sink)
		}
	}
	switch x := p.e.(type) {
	case *ast.ParenExpr:
		in(x.X)
	case *ast.StarExpr:
		in(x.X)
	case *ast.UnaryExpr:
		in(x.X)
	case *ast.BinaryExpr:
		in(x.X, x.Y)
	case *ast.IndexExpr:
		in(x.X)
	case *ast.SliceExpr:
		in(x.X)
	case *ast.CompositeLit:
		for _, e := range x.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				e = kv.Value
			}
			in(e)
		}
	case *ast.Ident, *ast.SelectorExpr:
		f.followObject(target(x, p.info), x, sink)
	case *ast.CallExpr:
		f.followCall(x, p, sink)
	case *ast.FuncLit:
	default:
		f.bad(p.e, sink, types.ExprString(p.e))
	}
}

// followKeys requires that the keys of a map are constants; those of a list are numbers.
func (f *flow) followKeys(p place, sink string) {
	m, ok := p.info.TypeOf(p.e).Underlying().(*types.Map)
	if !ok || !hasText(m.Key()) {
		return
	}
	switch x := ast.Unparen(p.e).(type) {
	case *ast.CompositeLit:
		for _, e := range x.Elts {
			f.follow(place{e: e.(*ast.KeyValueExpr).Key, info: p.info}, sink)
		}
	case *ast.Ident, *ast.SelectorExpr:
		f.followObject(keysOf{target(x, p.info)}, x, sink)
	case *ast.CallExpr:
		if _, ok := called(x, p.info).(*types.Builtin); !ok { // make
			f.bad(x, sink, types.ExprString(x))
		}
	default:
		f.bad(x, sink, types.ExprString(x))
	}
}

// followObject requires that a variable is only ever set to constants.
func (f *flow) followObject(o any, at ast.Node, sink string) {
	if v, ok := o.(*types.Var); ok && v.Pkg() != nil && !ours(v.Pkg()) && !strings.HasPrefix(v.String(), "field SQL") { // bun.Table's, of our models
		f.bad(at, sink, v.String())
	}
	if o == nil || f.seen[o] {
		return
	}
	f.seen[o] = true
	if v, ok := o.(*types.Var); ok && v.Pkg() != nil && f.trusted[v.Pkg().Path()+"."+v.Name()] != "" {
		return
	}
	if v, ok := o.(*types.Var); ok && (f.filled[o] || len(f.values[o]) == 0 && v.Kind() != types.ResultVar && v.Pkg() != nil && ours(v.Pkg())) {
		f.bad(at, sink, v.Name()+" is read from outside")
	}
	for _, p := range f.values[o] {
		f.way = append(f.way, f.at(p.e))
		f.follow(p, sink)
		f.way = f.way[:len(f.way)-1]
	}
}

func ours(p *types.Package) bool { return strings.HasPrefix(p.Path(), "backstop") }

// followCall requires that a result of a call consists of constants.
func (f *flow) followCall(x *ast.CallExpr, p place, sink string) {
	in := func(all ...ast.Expr) {
		for _, e := range all {
			f.follow(place{e: e, info: p.info}, sink)
		}
	}
	if p.info.Types[x.Fun].IsType() {
		in(x.Args...)
		return
	}
	switch o := called(x, p.info).(type) {
	case *types.Builtin:
		if o.Name() != "make" && o.Name() != "new" {
			in(x.Args...)
		}
	case *ast.FuncLit:
		f.followObject(result{o, p.nth}, x, sink)
	case *types.Func:
		name := o.FullName()
		switch _, isTrusted := f.trusted[name]; {
		case isTrusted, slices.Contains(harmless, name):
		case slices.Contains(combine, name):
			if sel, ok := ast.Unparen(x.Fun).(*ast.SelectorExpr); ok && o.Signature().Recv() != nil && !strings.Contains(name, "regexp") {
				in(sel.X)
			}
			in(x.Args...)
		case name == "(github.com/uptrace/bun/schema.QueryGen).FormatQuery": // the others are quoted
			in(x.Args[0])
		case o.Pkg() == nil || !ours(o.Pkg()):
			f.bad(x, sink, "a result of "+name)
		case types.IsInterface(recv(o)):
			for _, m := range f.methods[method(o)] {
				f.followObject(result{m, p.nth}, x, sink)
			}
		default:
			f.followObject(result{o, p.nth}, x, sink)
		}
	case *types.Var: // any function of that type
		if lits := f.closures(o); lits != nil {
			for _, lit := range lits {
				f.followObject(result{lit.e, p.nth}, x, sink)
			}
			return
		}
		sig, _ := o.Type().Underlying().(*types.Signature)
		f.followValue(sig, x, p, sink)
	default:
		f.bad(x, sink, types.ExprString(x))
	}
}

// followValue requires that the result of every function that the called value can be consists of
// constants.
func (f *flow) followValue(sig *types.Signature, x *ast.CallExpr, p place, sink string) {
	if sig == nil {
		f.bad(x, sink, types.ExprString(x))
		return
	}
	for _, lit := range f.literals[shape(sig)] {
		f.followObject(result{lit, p.nth}, x, sink)
	}
	for o := range f.values {
		if r, ok := o.(result); ok {
			if fn, ok := r.of.(*types.Func); ok && r.n == p.nth && slices.Contains(f.byValue[shape(sig)], fn.Signature()) {
				f.followObject(r, x, sink)
			}
		}
	}
}
