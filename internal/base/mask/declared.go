package mask

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
)

// What adapters and channels declared as harmless: names of fields, parameters and headers. A
// value under any other name is masked.
var (
	declared  atomic.Pointer[map[string]bool]
	declaring sync.Mutex
)

// Declare adds names, separated by spaces, whose values may be shown. Adapters and channels
// declare theirs in a package variable, and those of a configuration when it is read. A name
// that stands for a person or a credential stays masked even if it is declared.
func Declare(names ...string) bool {
	declaring.Lock()
	defer declaring.Unlock()
	all := map[string]bool{}
	if known := declared.Load(); known != nil {
		all = *known
	}
	before := len(all)
	all = maps.Clone(all)
	for _, list := range names {
		for name := range strings.FieldsSeq(list) {
			if !isPersonal(name) {
				all[folded(name)] = true
			}
		}
	}
	if len(all) > before {
		declared.Store(&all)
	}
	return true
}

// Shows reports whether the value of a field, parameter or header may be shown.
func Shows(name string) bool {
	all := declared.Load()
	return all != nil && (*all)[folded(name)]
}

// folded makes the spellings of a name the same.
func folded(name string) string { return strings.ReplaceAll(snake(name), "_", "") }

// Our own names, in what is stored of a call, a compensation and a notification, and the headers
// that HTTP and its proxies define.
var _ = Declare(`id order order_no trade trade_no refund_no payout_no dispute_no out_trade_no out_refund_no event event_id event_type
	delivery message merchant supplier op reference purpose object from to call kind cause state status amount currency fee paid_at
	created created_at updated_at version note attempt`,
	`Content-Type Content-Length Content-Encoding Date Server User-Agent Accept Accept-Encoding Accept-Language Host Connection Location
	Retry-After Request-Id X-Request-Id Traceparent Transfer-Encoding Vary Via Allow Cache-Control X-Forwarded-For X-Forwarded-Proto
	X-Forwarded-Host X-Real-Ip Forwarded`)
