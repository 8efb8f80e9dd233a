package supplier

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// ErrKind: no kind of supplier has the name.
var ErrKind = errors.New("unknown supplier kind")

// Kinds lists the kinds of supplier that are supported.
type Kinds []Kind

// Find returns the kind of that name, or ErrKind with the names there are.
func (ks Kinds) Find(name string) (Kind, error) {
	names := make([]string, 0, len(ks))
	for _, k := range ks {
		if k.Name == name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	return Kind{}, fmt.Errorf("%w %q: known are %s", ErrKind, name, strings.Join(names, ", "))
}

// New makes the adapter of the named kind. Errors: ErrKind, or those of Kind.New.
func (ks Kinds) New(name, code string, config json.RawMessage, out Client) (Adapter, error) {
	kind, err := ks.Find(name)
	if err != nil {
		return nil, err
	}
	return kind.New(code, config, out)
}

// Entry is one configured supplier, ready to use.
type Entry struct {
	ID         int64
	Code, Kind string
	Enabled    bool
	AllowIPs   []netip.Prefix // empty = any address
	Adapter    Adapter
	// Uncallable is what is wrong with the settings for calls, because of which Adapter
	// has no abilities; nil = nothing.
	Uncallable *FieldError
	// AccountID is our number for Adapter.Account: trade numbers and references
	// are unique within it, whichever code a callback comes in by.
	AccountID int64
	// QueryAfter is how old a payment must be before "not found" means unpaid.
	QueryAfter time.Duration
	// QueryRate bounds the calls to it per second, of all nodes together.
	QueryRate int
	// AskPending: an order for which nobody started a payment by us is asked for before it
	// is closed.
	AskPending bool
}

// Can is what it can be asked.
func (e Entry) Can() Abilities { return AbilitiesOf(e.Adapter) }

// Allowed reports whether a callback may come from addr (see ClientAddr). It is a
// second check beside the signature, never a substitute for it: an empty list allows
// any address, a list allows none that is not known.
func (e Entry) Allowed(addr netip.Addr) bool {
	return len(e.AllowIPs) == 0 || within(e.AllowIPs, addr)
}

// Registry is every supplier as of one version of the settings. It is immutable;
// a change of settings makes a new one that replaces it. A nil Registry is empty.
type Registry struct {
	byCode map[string]Entry
	byID   map[int64]Entry
	broken map[string]int64 // suppliers that cannot be used: ids by code
}

// NewRegistry makes a registry. Two entries with one code or id are an error. broken
// are the ids, by code, of suppliers whose settings cannot be used.
func NewRegistry(entries []Entry, broken map[string]int64) (*Registry, error) {
	r := &Registry{make(map[string]Entry, len(entries)), make(map[int64]Entry, len(entries)), broken}
	for _, e := range entries {
		if other, twice := r.byCode[e.Code]; twice {
			return nil, fmt.Errorf("suppliers %d and %d have the same code %q", other.ID, e.ID, e.Code)
		}
		if other, twice := r.byID[e.ID]; twice {
			return nil, fmt.Errorf("suppliers %q and %q have the same id %d", other.Code, e.Code, e.ID)
		}
		r.byCode[e.Code], r.byID[e.ID] = e, e
	}
	return r, nil
}

// Lookup returns the supplier of that code, enabled or not.
func (r *Registry) Lookup(code string) (Entry, bool) {
	if r == nil {
		return Entry{}, false
	}
	e, ok := r.byCode[code]
	return e, ok
}

// ByID returns the supplier with that id, enabled or not.
func (r *Registry) ByID(id int64) (Entry, bool) {
	if r == nil {
		return Entry{}, false
	}
	e, ok := r.byID[id]
	return e, ok
}

// All are all suppliers, by code.
func (r *Registry) All() []Entry {
	if r == nil {
		return nil
	}
	all := make([]Entry, 0, len(r.byCode))
	for _, code := range slices.Sorted(maps.Keys(r.byCode)) {
		all = append(all, r.byCode[code])
	}
	return all
}

// AllBroken are the codes of all suppliers that cannot be used.
func (r *Registry) AllBroken() []string {
	if r == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(r.broken))
}

// AllUncallable are the suppliers whose settings for calls are wrong, by code.
func (r *Registry) AllUncallable() []Entry {
	if r == nil {
		return nil
	}
	var all []Entry
	for _, code := range slices.Sorted(maps.Keys(r.byCode)) {
		if e := r.byCode[code]; e.Uncallable != nil {
			all = append(all, e)
		}
	}
	return all
}

// Broken returns the id of a supplier whose settings cannot be used: that is our
// fault, and the supplier must send its callbacks again.
func (r *Registry) Broken(code string) (int64, bool) {
	if r == nil {
		return 0, false
	}
	id, ok := r.broken[code]
	return id, ok
}
