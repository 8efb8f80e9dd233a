package dbtest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"backstop/internal/base/db"
)

// Locks walks the statements of all transactions on a PostgreSQL database, and finds those that
// lock rows against the order of locks: tables in a given order, the rows of each by id. Two such
// transactions may wait for each other.
type Locks struct {
	order []string

	mu     sync.Mutex
	broken map[string]bool
	locked map[string]int
}

// WatchedPostgres is Postgres with Locks for all transactions on it; order are the tables. url is
// for further nodes on the same database.
func WatchedPostgres(t testing.TB, order ...string) (d *db.DB, l *Locks, url string) {
	t.Helper()
	l = &Locks{order: order, broken: map[string]bool{}, locked: map[string]int{}}
	url = through(t, clone(t), func() func(statement) cut { return (&session{l: l}).see })
	return joined(t, db.Options{URL: url}), l, url
}

// Broken returns the violations found since the last call.
func (l *Locks) Broken() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Sorted(maps.Keys(l.broken))
	clear(l.broken)
	return all
}

// Locked returns how many transactions locked a row of each table.
func (l *Locks) Locked() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.locked)
}

// session is what one connection has locked in its present transaction.
type session struct {
	l    *Locks
	in   bool // a transaction has begun
	held map[string]*heldRows
	own  map[int64]bool // rows that it has inserted: ids are unique across tables
}

// heldRows are the locked rows of one table.
type heldRows struct {
	ids     map[int64]bool
	last    int64 // the greatest id
	unknown bool  // the statement did not name their ids: later ones are taken for these
}

func (s *session) see(x statement) cut {
	text := plain(x.text)
	switch first, _, _ := strings.Cut(text, " "); strings.TrimSuffix(first, ";") {
	case "begin", "start":
		s.in, s.held, s.own = true, map[string]*heldRows{}, map[int64]bool{}
	case "commit", "rollback", "end":
		s.end()
		s.in = false
	default:
		if s.in { // a statement alone holds nothing while it waits
			for _, k := range locksOf(text, x.values) {
				s.take(k, x.text)
			}
		}
	}
	return pass
}

func (s *session) end() {
	if !s.in {
		return
	}
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	for table := range s.held {
		s.l.locked[table]++
	}
}

// take notes a lock, and what is wrong with it.
func (s *session) take(k rowLock, text string) {
	rank := slices.Index(s.l.order, k.table)
	if rank < 0 {
		return
	}
	held := s.held[k.table]
	if k.own {
		for _, id := range k.ids {
			s.own[id] = true
		}
		return
	}
	fresh := slices.DeleteFunc(slices.Clone(k.ids), func(id int64) bool { return s.own[id] || held != nil && held.ids[id] })
	switch {
	case k.ids != nil && len(fresh) == 0: // locked before
		return
	case held != nil && (held.unknown || k.ids == nil): // locked before, as far as is known
		held.unknown = true
		return
	}
	if !k.skips {
		for _, later := range s.l.order[rank+1:] {
			if s.held[later] != nil {
				s.report("%s after %s: %s", k.table, later, text)
			}
		}
		if held != nil && fresh[0] < held.last || !slices.IsSorted(fresh) && !k.sorted {
			s.report("rows of %s not by id: %s", k.table, text)
		}
		if k.ids == nil && k.many && !k.sorted {
			s.report("rows of %s in no order: %s", k.table, text)
		}
	}
	if k.added {
		return
	}
	if held == nil {
		held = &heldRows{ids: map[int64]bool{}}
		s.held[k.table] = held
	}
	held.unknown = k.ids == nil
	for _, id := range fresh {
		held.ids[id], held.last = true, max(held.last, id)
	}
}

// values are what differs between statements of one kind.
var values = regexp.MustCompile(`'(?:[^']|'')*'|\b\d+\b`)

func (s *session) report(format string, args ...any) {
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	s.l.broken[values.ReplaceAllString(fmt.Sprintf(format, args...), "?")] = true
}

// rowLock is what one statement locks of one table.
type rowLock struct {
	table  string
	ids    []int64 // nil = unknown
	sorted bool    // it locks them by id
	many   bool    // it may lock several rows at once
	skips  bool    // it does not wait
	added  bool    // it inserts them unless they exist, so it only waits for others that do
	own    bool    // it inserts them, so nobody else has them
}

var (
	literal  = regexp.MustCompile(`'(?:[^']|'')*'`)
	blanks   = regexp.MustCompile(`\s+`)
	from     = regexp.MustCompile(`\b(?:from|join) (?:only )?([a-z_]+)`)
	changed  = regexp.MustCompile(`(?:^|\) |; )(?:update|delete from)(?: only)? ([a-z_]+)`)
	inserted = regexp.MustCompile(`^insert into ([a-z_]+)(?: as [a-z_]+)? \(id\b[^)]*\) (?:select (?:\* from unnest\()?\$(\d+)|values \((\d+))?`)
	byNumber = regexp.MustCompile(`\bid (?:= (\d+)\b|in \(([\d, ]+)\))`)
	byValue  = regexp.MustCompile(`\bid = (any ?\( ?)?\$(\d+)`)
	byRow    = regexp.MustCompile(`\bid = _v\.([a-z_]+)|_v\.([a-z_]+) = (?:[a-z]+\.)?id\b`)
	rows     = regexp.MustCompile(`with _v ?\(([^)]*)\) as \(select (?:\* from unnest\()?\$(\d+)`)
	parts    = regexp.MustCompile(`(?:^with|,) w\d+ as \(`)
	sorted   = regexp.MustCompile(`order by (?:[a-z]+\.)?id\b`)
)

// plain returns a statement in lower case, without literals and quotes.
func plain(text string) string {
	text = strings.ToLower(literal.ReplaceAllString(text, "?"))
	return strings.TrimSpace(blanks.ReplaceAllString(strings.ReplaceAll(text, `"`, ""), " "))
}

// locksOf returns the locks that a statement takes. Inserting a row locks nothing that another
// transaction could have locked, unless it may conflict.
func locksOf(text string, values [][]byte) (all []rowLock) {
	if starts := parts.FindAllStringIndex(text, -1); starts != nil {
		for _, at := range starts {
			all = append(all, locksOf(outermost(text[at[1]:]), values)...)
		}
		return all
	}
	rest := text
	for {
		at := strings.Index(rest, " for update")
		if at < 0 {
			break
		}
		part := innermost(rest[:at])
		ids := idsOf(part, rest, values)
		for _, m := range from.FindAllStringSubmatch(part, -1) {
			all = append(all, rowLock{
				table: m[1], ids: ids, sorted: sorted.MatchString(part), many: len(ids) != 1 && !strings.Contains(part, " limit 1"),
				skips: strings.HasPrefix(rest[at:], " for update skip locked"),
			})
		}
		rest = rest[at+len(" for update"):]
	}
	for _, m := range changed.FindAllStringSubmatch(text, -1) {
		all = append(all, rowLock{table: m[1], ids: idsOf(text, text, values)})
	}
	if m := inserted.FindStringSubmatch(text); m != nil {
		switch conflict := strings.Contains(text, " on conflict "); {
		case conflict && strings.Contains(text, " do nothing"):
			all = append(all, rowLock{table: m[1], added: true})
		case conflict:
			all = append(all, rowLock{table: m[1]})
		case m[2] != "":
			all = append(all, rowLock{table: m[1], own: true, ids: bigints(valueOf(values, m[2]))})
		case m[3] != "":
			id, _ := strconv.ParseInt(m[3], 10, 64)
			all = append(all, rowLock{table: m[1], own: true, ids: []int64{id}})
		}
	}
	return all
}

// outermost returns the query that ends where the first bracket closes that is not opened in it.
func outermost(text string) string {
	depth := 0
	for i, c := range text {
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth < 0 {
				return text[:i]
			}
		}
	}
	return text
}

// innermost returns the query at whose end a text ends.
func innermost(text string) string {
	depth := 0
	for i := len(text) - 1; i >= 0; i-- {
		switch text[i] {
		case ')':
			depth++
		case '(':
			if depth--; depth < 0 {
				return text[i+1:]
			}
		}
	}
	return text
}

// valueOf returns the value of the parameter with a number.
func valueOf(values [][]byte, number string) []byte {
	if n, _ := strconv.Atoi(number); n >= 1 && n <= len(values) {
		return values[n-1]
	}
	return nil
}

// idsOf returns the ids that a query names, as far as they can be read; nil = it names none.
func idsOf(query, whole string, values [][]byte) []int64 {
	if m := byRow.FindStringSubmatch(query); m != nil {
		if of := rows.FindStringSubmatch(whole); of != nil {
			first, _ := strconv.Atoi(of[2])
			at := slices.Index(strings.Split(of[1], ", "), m[1]+m[2])
			if at >= 0 {
				return bigints(valueOf(values, strconv.Itoa(first+at)))
			}
		}
		return nil
	}
	if m := byNumber.FindStringSubmatch(query); m != nil {
		var ids []int64
		for _, text := range strings.FieldsFunc(m[1]+m[2], func(r rune) bool { return r == ',' || r == ' ' }) {
			id, _ := strconv.ParseInt(text, 10, 64)
			ids = append(ids, id)
		}
		return ids
	}
	if m := byValue.FindStringSubmatch(query); m != nil {
		v := valueOf(values, m[2])
		if m[1] == "" && len(v) == 8 {
			return []int64{int64(binary.BigEndian.Uint64(v))}
		}
		return bigints(v)
	}
	return nil
}
