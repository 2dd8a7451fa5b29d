// Prints where a file in Go, read from standard input, can be changed by a few characters: JSON as of the class Site.
// Left out are logging, metrics, texts of errors, and functions named String.
//
// With an offset as argument: where the innermost statement of a block begins that contains it, or -1.
package main

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
)

type site struct {
	Start, End            int
	Becomes, Kind, Inside string
	First, Last           int // lines of the statement
}

var (
	silent  = regexp.MustCompile(`(?i)^(logger|debuglogger|logf?|debugf?|infof?|warnf?|errorf?|fmt|metric.*|hooks?|eachhook|panic|println|printf|new)$`)
	counter = regexp.MustCompile(`^(Inc|Mark|R?Lock|R?Unlock|TryR?Lock)$`) // of metrics, and locks, which only crash or hang
	isTime  = regexp.MustCompile(`(?i:timeout|interval|backoff|delay|deadline|linger)|(Ms|Millis|Seconds)$|^ms$`)
	reset   = regexp.MustCompile(`(?i)^(reset|clear|forget|invalidate)`)
	empty   = regexp.MustCompile(`^(nil|false|0|-1|""|\w*(NO_|Undefined|Empty)\w*|(map|\[)[^{]*\{\})$`)
	errors  = regexp.MustCompile(`^(kerr\.[A-Z]\w*|Err[A-Z]\w*)(\.Code)?$`)
	noErr   = regexp.MustCompile(`^(kerr\.(Code|Message|Retriable|Error|.*ForCode|Is.*)|ErrNoError)$`)
	kinds   = []*regexp.Regexp{isTime, regexp.MustCompile(`(?i)(offset|epoch|generation|partition|version|count|size)(id)?$`),
		regexp.MustCompile(`(?i)(id|name|topic|instance)$`)}
	others = map[token.Token][]string{token.EQL: {"!="}, token.NEQ: {"=="}, token.LSS: {"<=", ">="}, token.LEQ: {"<", ">"},
		token.GTR: {">=", "<="}, token.GEQ: {">", "<"}, token.LAND: {"||"}, token.LOR: {"&&"}}
	text      string
	set       = token.NewFileSet()
	found     = []site{}
	inside    string
	stack     []ast.Node
	errorsIn  []string // what the function compares with, or the file where that is less than two
	errorsAll []string
)

func at(pos token.Pos) int    { return set.Position(pos).Offset }
func of(node ast.Node) string { return text[at(node.Pos()):at(node.End())] }
func line(pos token.Pos) int  { return set.Position(pos).Line }
func parent() ast.Node        { return stack[len(stack)-2] }
func isExpr(n ast.Node) bool  { _, is := n.(ast.Expr); return is }
func last(node ast.Node) string {
	switch node := node.(type) {
	case *ast.Ident:
		return node.Name
	case *ast.SelectorExpr:
		return node.Sel.Name
	case *ast.CallExpr:
		return last(node.Fun)
	}
	return ""
}

// The lines of the innermost statement of a block, without those of its own block.
func lines() (int, int) {
	for i := len(stack) - 1; i > 0; i-- {
		switch stack[i-1].(type) {
		case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
			if _, is := stack[i].(ast.Stmt); is {
				end := stack[i].End()
				ast.Inspect(stack[i], func(node ast.Node) bool {
					if block, is := node.(*ast.BlockStmt); is && block.Lbrace < end {
						end = block.Lbrace
					}
					return true
				})
				return line(stack[i].Pos()), line(end)
			}
		}
	}
	return line(stack[len(stack)-1].Pos()), line(stack[len(stack)-1].End())
}

func add(kind string, start, end token.Pos, becomes string) {
	first, last := lines()
	found = append(found, site{at(start), at(end), becomes, kind, inside, first, last})
}

func replace(kind string, node ast.Node, becomes string) { add(kind, node.Pos(), node.End(), becomes) }

func swap(a, b ast.Node) {
	add("order", a.Pos(), b.End(), of(b)+text[at(a.End()):at(b.Pos())]+of(a))
}

// Whether a call, with all that it is selected from, is of a logger and the like.
func isSilent(call *ast.CallExpr) bool {
	is := counter.MatchString(last(call))
	ast.Inspect(call.Fun, func(node ast.Node) bool {
		name, isIdent := node.(*ast.Ident)
		is = is || isIdent && silent.MatchString(name.Name)
		return true
	})
	return is
}

func isError(node ast.Node) bool {
	return errors.MatchString(of(node)) && !noErr.MatchString(of(node))
}

func class(node ast.Node) int {
	return slices.IndexFunc(kinds, func(each *regexp.Regexp) bool { return last(node) != "" && each.MatchString(last(node)) })
}

func isSimple(node ast.Stmt) bool {
	switch node := node.(type) {
	case *ast.ExprStmt:
		call, is := node.X.(*ast.CallExpr)
		return is && !isSilent(call)
	case *ast.AssignStmt:
		return node.Tok == token.ASSIGN
	case *ast.IncDecStmt, *ast.SendStmt:
		return true
	case *ast.GoStmt:
		return !isSilent(node.Call)
	}
	return false // the order of what is deferred seldom matters
}

func calls(node ast.Node) bool {
	does := false
	ast.Inspect(node, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.CallExpr:
			does = does || !slices.Contains([]string{"len", "append", "make", "int32", "int64", "string"}, of(node.Fun))
		case *ast.SendStmt:
			does = true
		}
		return true
	})
	return does
}

func statements(list []ast.Stmt) {
	for i := 0; i+1 < len(list); i++ {
		a, b := list[i], list[i+1]
		stack = append(stack, a)
		one, isOne := a.(*ast.AssignStmt)
		other, isOther := b.(*ast.AssignStmt)
		if isOne && isOther && len(one.Rhs) == 1 && len(other.Rhs) == 1 {
			if c := class(one.Lhs[0]); c >= 0 && c == class(other.Lhs[0]) && last(one.Rhs[0]) != "" && last(other.Rhs[0]) != "" {
				swap(one.Rhs[0], other.Rhs[0])
			}
		} else if isSimple(a) && isSimple(b) && (calls(a) || calls(b)) {
			swap(a, b)
		}
		stack = stack[:len(stack)-1]
	}
}

func pairs(list []ast.Expr) {
	value := func(i int) ast.Expr {
		if pair, is := list[i].(*ast.KeyValueExpr); is {
			return pair.Value
		}
		return list[i]
	}
	for i := 0; i+1 < len(list); i++ {
		if class(value(i)) >= 0 && class(value(i)) == class(value(i+1)) && of(value(i)) != of(value(i+1)) {
			swap(value(i), value(i+1))
		}
	}
}

func errorsOf(list []ast.Expr) {
	for i, each := range list {
		if !isError(each) {
			continue
		}
		known := errorsIn
		if len(known) < 2 {
			known = errorsAll
		}
		place, _ := slices.BinarySearch(known, of(each))
		for _, other := range append(slices.Clone(known[min(place+1, len(known)):]), known[:place]...) {
			alike := strings.Contains(other, ".Code") == strings.Contains(of(each), ".Code")
			if alike && !slices.ContainsFunc(list, func(one ast.Expr) bool { return of(one) == other }) {
				replace("swapped error", each, other)
				break
			}
		}
		if i > 0 {
			add("swapped error", list[i-1].End(), each.End(), "")
		} else if len(list) > 1 {
			add("swapped error", each.Pos(), list[1].Pos(), "")
		}
	}
}

func namedErrors(node ast.Node) []string {
	names := []string{}
	ast.Inspect(node, func(each ast.Node) bool {
		if _, is := each.(*ast.ValueSpec); is {
			return false
		}
		if each != nil && isExpr(each) && isError(each) {
			names = append(names, of(each))
			return false
		}
		return true
	})
	sort.Strings(names)
	return slices.Compact(names)
}

func literal(node *ast.BasicLit) {
	number, err := strconv.ParseInt(node.Value, 0, 32)
	if err != nil {
		return
	}
	minus, negative := parent().(*ast.UnaryExpr)
	if negative && minus.Op == token.SUB {
		replace("constant", minus, strconv.FormatInt(-number+1, 10))
		replace("constant", minus, strconv.FormatInt(-number-1, 10))
		return
	}
	hint := ""
	if product, is := parent().(*ast.BinaryExpr); is {
		hint = of(product)
	} else if pair, is := parent().(*ast.KeyValueExpr); is {
		hint = of(pair.Key)
	}
	if number >= 100 || number > 0 && (isTime.MatchString(hint) || strings.Contains(hint, "time.")) {
		replace("constant", node, strconv.FormatInt(number*10, 10))
		return
	}
	replace("constant", node, strconv.FormatInt(number+1, 10))
	_, isIndex := parent().(*ast.IndexExpr)
	if isLength := strings.HasPrefix(hint, "len("); number > 0 || !isIndex && !isLength {
		replace("constant", node, strconv.FormatInt(number-1, 10))
	}
}

func visit(node ast.Node) bool {
	if node == nil {
		stack = stack[:len(stack)-1]
		return true
	}
	stack = append(stack, node)
	keep := func() bool { stack = stack[:len(stack)-1]; return false }
	switch node := node.(type) {
	case *ast.GenDecl:
		if node.Tok == token.IMPORT || node.Tok == token.TYPE {
			return keep()
		}
	case *ast.FuncDecl:
		inside, errorsIn = node.Name.Name, namedErrors(node)
		if node.Recv != nil {
			inside = strings.TrimLeft(strings.Split(of(node.Recv.List[0].Type), "[")[0], "*") + "." + inside
		}
		if node.Name.Name == "String" || node.Body == nil {
			return keep()
		}
	case *ast.ArrayType, *ast.FuncType, *ast.StructType:
		return keep()
	case *ast.BlockStmt:
		statements(node.List)
	case *ast.CaseClause:
		statements(node.Body)
		errorsOf(node.List)
	case *ast.CommClause:
		statements(node.Body)
	case *ast.ExprStmt:
		if call, is := node.X.(*ast.CallExpr); is {
			if isSilent(call) {
				return keep()
			}
			replace(map[bool]string{true: "dropped reset", false: "dropped statement"}[reset.MatchString(last(call))], node, "")
		}
	case *ast.AssignStmt:
		_, header := parent().(*ast.IfStmt)
		if node.Tok != token.DEFINE && !header {
			kind := "dropped statement"
			if _, is := node.Lhs[0].(*ast.SelectorExpr); is && len(node.Rhs) == 1 && empty.MatchString(of(node.Rhs[0])) {
				kind = "dropped reset"
			}
			replace(kind, node, "")
		}
		errorsOf(node.Rhs)
	case *ast.IncDecStmt:
		if _, loop := parent().(*ast.ForStmt); !loop {
			replace("dropped statement", node, "")
		}
	case *ast.DeferStmt:
		if isSilent(node.Call) {
			return keep()
		}
		replace("dropped statement", node, "")
	case *ast.GoStmt:
		replace("dropped statement", node, "")
	case *ast.SendStmt:
		if clause, is := parent().(*ast.CommClause); !is || clause.Comm != node {
			replace("dropped statement", node, "")
		}
	case *ast.BranchStmt:
		if node.Tok == token.CONTINUE || node.Tok == token.BREAK {
			replace("dropped statement", node, "")
		}
	case *ast.ReturnStmt:
		if len(node.Results) == 0 {
			replace("dropped statement", node, "")
		}
	case *ast.CallExpr:
		if isSilent(node) {
			return keep()
		}
		pairs(node.Args)
		if of(node.Fun) == "errors.Is" && len(node.Args) == 2 {
			errorsOf(node.Args[1:])
		}
		for _, each := range node.Args {
			if _, is := each.(*ast.BasicLit); !is && isTime.MatchString(last(each)) {
				replace("constant", each, of(each)+" * 10")
			}
		}
	case *ast.CompositeLit:
		pairs(node.Elts)
	case *ast.BinaryExpr:
		for _, other := range others[node.Op] {
			add("branch", node.OpPos, node.OpPos+token.Pos(len(node.Op.String())), other)
		}
		if node.Op == token.LAND || node.Op == token.LOR {
			replace("branch", node, of(node.X))
			replace("branch", node, of(node.Y))
		}
		if node.Op == token.EQL || node.Op == token.NEQ {
			errorsOf([]ast.Expr{node.Y})
		}
	case *ast.UnaryExpr:
		if node.Op == token.NOT {
			replace("branch", node, of(node.X))
		}
	case *ast.BasicLit:
		literal(node)
	case *ast.Ident:
		if node.Name == "true" || node.Name == "false" {
			replace("constant", node, strconv.FormatBool(node.Name == "false"))
		}
	}
	condition(node)
	return true
}

func condition(node ast.Node) {
	test := ast.Expr(nil)
	switch over := stack[max(0, len(stack)-2)].(type) {
	case *ast.IfStmt:
		test = over.Cond
	case *ast.ForStmt:
		test = over.Cond
	}
	switch node.(type) {
	case *ast.CallExpr, *ast.SelectorExpr, *ast.Ident, *ast.IndexExpr:
		if test == node {
			replace("branch", node, "!"+of(node))
		}
	}
}

func statementAt(file *ast.File, offset int) int {
	begins, blocks := -1, [][]ast.Stmt{}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.BlockStmt:
			blocks = append(blocks, node.List)
		case *ast.CaseClause:
			blocks = append(blocks, node.Body)
		case *ast.CommClause:
			blocks = append(blocks, node.Body)
		}
		return true
	})
	for _, each := range slices.Concat(blocks...) {
		switch each.(type) {
		case *ast.CaseClause, *ast.CommClause:
			continue // in the block of a switch or select: nothing can stand before it
		}
		if at(each.Pos()) <= offset && offset <= at(each.End()) {
			begins = max(begins, at(each.Pos()))
		}
	}
	return begins
}

func main() {
	data, err := io.ReadAll(os.Stdin)
	text = string(data)
	if err == nil {
		var file *ast.File
		if file, err = parser.ParseFile(set, "", data, parser.SkipObjectResolution); err == nil {
			if len(os.Args) > 1 {
				offset, _ := strconv.Atoi(os.Args[1])
				os.Stdout.WriteString(strconv.Itoa(statementAt(file, offset)))
				return
			}
			errorsAll = namedErrors(file)
			ast.Inspect(file, visit)
			err = json.NewEncoder(os.Stdout).Encode(found)
		}
	}
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
}
