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

// ErrKind means that no kind of supplier has the name.
var ErrKind = errors.New("unknown supplier kind")

// Kinds lists the supported kinds of suppliers.
type Kinds []Kind

// Find returns the kind with this name, or ErrKind with the known names.
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

// New creates an adapter of the named kind. Errors: ErrKind, or those of Kind.New.
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
	Name       string // "" = its code
	Enabled    bool
	AllowIPs   []netip.Prefix // empty = any address
	Adapter    Adapter
	// Uncallable is the problem with the settings for calls that leaves Adapter without
	// abilities; nil = none.
	Uncallable *FieldError
	// AccountID is our id for Adapter.Account: trade numbers and references are unique within
	// it, whatever supplier code a callback uses.
	AccountID int64
	// QueryAfter is how old a payment must be before "not found" means unpaid.
	QueryAfter time.Duration
	// QueryRate limits the calls per second, of all nodes together.
	QueryRate int
	// QueryPending: an order for which we started no payment is queried before it is closed.
	QueryPending bool
	// RefundRepeat: the supplier knows a refund's number for life, whatever its kind says.
	RefundRepeat bool
	// PayoutQueryAfter is how old a payout's last call must be before a query that says "failed"
	// is believed.
	PayoutQueryAfter time.Duration
	// PayoutRepeat: the supplier knows a payout's number for life, whatever its kind says.
	PayoutRepeat bool
}

// Can returns the calls that it supports.
func (e Entry) Can() Abilities { return AbilitiesOf(e.Adapter) }

// Allowed reports whether a callback may come from addr (see ClientAddr). This check
// supplements the signature and never replaces it: an empty list allows any address; a
// non-empty list excludes unknown addresses.
func (e Entry) Allowed(addr netip.Addr) bool {
	return len(e.AllowIPs) == 0 || within(e.AllowIPs, addr)
}

// Registry holds all suppliers of one version of the settings. It is immutable; a change of
// settings replaces it. A nil Registry is empty.
type Registry struct {
	byCode map[string]Entry
	byID   map[int64]Entry
	broken map[string]int64 // suppliers that cannot be used: ids by code
}

// NewRegistry returns a registry. Two entries with the same code or id are an error. broken
// maps the codes of suppliers with unusable settings to their ids.
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

// Lookup returns the supplier with this code, enabled or not.
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

// All returns all suppliers, by code.
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

// AllBroken returns the codes of all suppliers that cannot be used.
func (r *Registry) AllBroken() []string {
	if r == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(r.broken))
}

// AllUncallable returns the suppliers with invalid settings for calls, by code.
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

// Broken returns the id of a supplier whose settings cannot be used: that is our fault, and the
// supplier must repeat its callbacks.
func (r *Registry) Broken(code string) (int64, bool) {
	if r == nil {
		return 0, false
	}
	id, ok := r.broken[code]
	return id, ok
}
