package settings

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"backstop/internal/base/seal"
)

// The objects that can be set, as the apply file declares them; what is stored of them
// is in the rows. The tags are read by Fields.

// code is what objects are called in addresses and in the API.
var code = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// File is the whole apply file.
type File struct {
	Suppliers     []Supplier     `apply:"suppliers" doc:"Who calls back when a buyer has paid."`
	Merchants     []Merchant     `apply:"merchants" doc:"Who sells, and how it is notified."`
	SKUs          []SKU          `apply:"skus" doc:"Goods of which only so many can be sold."`
	Accounts      []Account      `apply:"accounts" doc:"Opening balances of merchants."`
	Subscriptions []Subscription `apply:"subscriptions" doc:"Systems of your own that hear of merchants' orders beside them."`
}

// Supplier is who tells us of payments.
type Supplier struct {
	Code     string         `apply:"code" form:"code" max:"64" need:"missing" example:"quickpay" doc:"Its name; its callbacks come to /callback/CODE."`
	Kind     string         `apply:"kind" need:"missing" example:"sortedparams" doc:"The protocol it speaks: wechatpay, alipay, stripe or sortedparams."`
	Enabled  bool           `apply:"enabled" default:"true" example:"true" doc:"Whether its callbacks are taken and orders may name it."`
	AllowIPs []netip.Prefix `apply:"allow_ips" many:"ranges" max:"1000" empty:"any address" example:"[101.226.103.0/25, 203.0.113.7]" doc:"Where its callbacks may come from: ranges, or single addresses."`
	Config   map[string]any `apply:"config" empty:"no settings" example:"{ format: form, algorithm: md5, key: 'file:secrets/quickpay-key', key_append: '&key={key}', order_field: out_trade_no, trade_field: trade_no, amount_field: money, currency: CNY, status_field: trade_status, paid_values: [TRADE_SUCCESS] }" doc:"What its kind needs. It is taken as a whole; any value may be file:PATH."`

	account string // as its kind names the account at the supplier
	unread
}

// Merchant is who sells.
type Merchant struct {
	Code           string   `apply:"code" form:"code" max:"64" need:"missing" example:"m1" doc:"Its name."`
	Name           string   `apply:"name" empty:"its code" example:"Galaxy Mall" doc:"Its name for people."`
	APIKey         Secret   `apply:"api_key" max:"200" empty:"it cannot call the API" example:"file:secrets/m1-api-key" doc:"What it calls the API with: a random text of at least 20 characters (openssl rand -hex 24). Stored hashed."`
	SigningSecrets []Secret `apply:"signing_secret" empty:"required in a new merchant" example:"file:secrets/m1-signing" doc:"What signs its notifications: whsec_ and the base64 of 24 to 64 bytes. While it is replaced, write signing_secrets: [new, old] instead."`
	Notify         Notify   `apply:"notify" empty:"all defaults" example:"{ urls: [https://m1.example/notify] }" doc:"How it is notified."`

	recipient
}

// Subscription is a system of the operator's own that is notified like a merchant.
type Subscription struct {
	Code           string   `apply:"code" form:"code" max:"64" need:"missing" example:"warehouse" doc:"Its name."`
	Name           string   `apply:"name" empty:"its code" example:"Warehouse" doc:"Its name for people."`
	Enabled        bool     `apply:"enabled" default:"true" example:"true" doc:"Whether it is notified."`
	Merchants      Followed `apply:"merchants" default:"all" example:"[m1]" doc:"The merchants of whose orders it is notified: all, or a list of codes."`
	SigningSecrets []Secret `apply:"signing_secret" empty:"required where it has webhooks" example:"file:secrets/warehouse-signing" doc:"As a merchant's; signing_secrets: [new, old] as well."`
	Notify

	recipient
}

// recipient is what merchants and subscriptions have in common beside their fields.
type recipient struct {
	unread
	disabled []string // addresses to which nothing is sent
}

// Enable lets addresses be used again: who declares one wants it to be notified.
func (r *recipient) Enable(declared func(address string) bool) {
	r.disabled = slices.DeleteFunc(slices.Clone(r.disabled), declared)
}

// unread are the fields of which what is stored cannot be read.
type unread []string

// Give says that a field has a new value, whatever is stored.
func (u *unread) Give(word string) {
	*u = slices.DeleteFunc(slices.Clone(*u), func(w string) bool { return w == word })
}

// Notify is how a merchant or a subscription is notified.
type Notify struct {
	URLs        []string      `apply:"urls" form:"url" many:"addresses" max:"10" empty:"none" example:"[https://m1.example/notify]" doc:"Plain webhook addresses, tried in turn: used where an order names none."`
	Ack         string        `apply:"ack" oneof:"status text" default:"status" example:"text" doc:"What counts as taken: any status 2xx, or 2xx and a body equal to ack_text."`
	AckText     string        `apply:"ack_text" max:"256" default:"success" example:"OK" doc:"The body of an answer that says taken, for ack: text."`
	Format      string        `apply:"format" oneof:"standard form form-md5" default:"standard" example:"form" doc:"How a webhook's body is written: JSON with Standard Webhooks' signature, or sorted parameters signed with HMAC-SHA256 or MD5."`
	Schedule    Schedule      `apply:"schedule" default:"BACKSTOP_NOTIFY_SCHEDULE" example:"[1s, 3s, 5s]" doc:"The waits between attempts, each from the end of the one before: day, quick, or a list of at most 50 waits of 100ms to 24h, 168h in all."`
	Timeout     time.Duration `apply:"timeout" min:"1s" max:"10s" default:"BACKSTOP_NOTIFY_TIMEOUT" example:"5s" doc:"The longest that one attempt may take."`
	MaxInFlight int           `apply:"max_in_flight" min:"1" max:"1000" default:"BACKSTOP_NOTIFY_MAX_IN_FLIGHT" example:"20" doc:"Attempts that may run at once on each node."`
	RateLimit   Rate          `apply:"rate_limit" min:"1" max:"100000" empty:"no limit" example:"50/s" doc:"Attempts per second of all nodes together."`
	Breaker     Breaker       `apply:"breaker" empty:"the program's settings" example:"{ failures: 3, open: 60s }" doc:"When the breaker opens. It is taken as a whole."`
	Events      []string      `apply:"events" many:"types" max:"100" empty:"all" example:"[order.paid, order.closed]" doc:"The types of events that are sent; others are recorded as skipped."`
	Balance     string        `apply:"balance" oneof:"failover weighted all" default:"failover" example:"weighted" doc:"Which address of a channel an attempt goes to: in turn, by weight, or each address has attempts of its own."`
	Endpoints   []Endpoint    `apply:"endpoints" many:"addresses" max:"20" empty:"none" example:"[{ name: backup, url: https://backup.m1.example/notify }]" doc:"Addresses beside urls. The list is taken as a whole."`
}

// Breaker says when a recipient counts as unreachable.
type Breaker struct {
	Failures   int           `apply:"failures" min:"1" max:"1000" empty:"BACKSTOP_BREAKER_FAILURES" example:"3" doc:"Failures in a row that open it."`
	Open       time.Duration `apply:"open" min:"1s" max:"24h" empty:"BACKSTOP_BREAKER_OPEN" example:"60s" doc:"How long it stays open before one notification is tried."`
	Rate       *int          `apply:"rate" min:"0" max:"100" empty:"BACKSTOP_BREAKER_RATE" example:"50" doc:"Percentage of failures within window that opens it too; 0 = none does."`
	Window     time.Duration `apply:"window" min:"1s" max:"1h" empty:"BACKSTOP_BREAKER_WINDOW" example:"30s" doc:"The time over which rate is measured."`
	MinSamples int           `apply:"least" min:"1" max:"100000" empty:"BACKSTOP_BREAKER_LEAST" example:"10" doc:"Results within window below which rate does not count."`
	Slow       time.Duration `apply:"slow" min:"100ms" max:"10s" empty:"none does" example:"5s" doc:"An answer that takes longer counts as a failure."`
}

// Endpoint is one address beside the plain ones.
type Endpoint struct {
	Name        string            `apply:"name" form:"code" max:"64" need:"missing" example:"backup" doc:"Its name, unique within the entry."`
	Channel     Channel           `apply:"channel" default:"webhook" example:"webhook" doc:"How it is reached: webhook, websocket, amqp, kafka, email or sms; a subscription has no websocket."`
	URL         string            `apply:"url" form:"url" max:"2048" need:"missing" example:"https://backup.m1.example/notify" doc:"Where it is, as its channel writes addresses. Logins stand in credentials."`
	Events      []string          `apply:"events" many:"types" max:"100" empty:"all that the entry wants" example:"[order.paid]" doc:"The types of events that go here."`
	Weight      int               `apply:"weight" min:"1" max:"100" default:"1" example:"5" doc:"Its share, for balance: weighted."`
	Headers     map[string]Secret `apply:"headers" max:"20" empty:"none" example:"{ X-Tenant: seven }" doc:"Headers of its own, up to 4096 bytes each. Stored sealed."`
	Credentials map[string]Secret `apply:"credentials" max:"20" empty:"what is stored, else none" example:"{ form_key: 'file:secrets/form-key' }" doc:"What its channel signs or logs in with, up to 4096 bytes each. Stored sealed; left out, they stay."`
	ClientCert  string            `apply:"client_cert" form:"pem" max:"65536" empty:"none" example:"file:m1-client.pem" doc:"PEM that is shown to servers which ask for a certificate (mTLS)."`
	ClientKey   Secret            `apply:"client_key" max:"65536" empty:"what is stored, else none" example:"file:secrets/m1-client-key.pem" doc:"The key of client_cert, PEM. Stored sealed; left out, it stays."`
	Format      string            `apply:"format" oneof:"standard form form-md5" empty:"that of urls" example:"form" doc:"How its body is written."`
	Digest      time.Duration     `apply:"digest" min:"10s" max:"24h" empty:"each event at once" example:"1h" doc:"Gathers the events of so long into one mail, for channel: email."`
}

// SKU is an article.
type SKU struct {
	SKU   string `apply:"sku" need:"missing" example:"SKU-1" doc:"Its number, as orders name it."`
	Stock int64  `apply:"stock" min:"0" max:"1000000000000" need:"missing" example:"100" doc:"Pieces in stock at first. Live stock is never overwritten."`
}

// Account is a merchant's opening balance in one currency.
type Account struct {
	Merchant string `apply:"merchant" form:"code" max:"64" need:"missing" example:"m1" doc:"The merchant's code."`
	Currency string `apply:"currency" need:"missing" example:"CNY" doc:"ISO 4217."`
	Balance  int64  `apply:"balance" min:"0" max:"1000000000000000" need:"missing: the opening balance in minor units" example:"1000000" doc:"What it begins with, in minor units. Booked once, as an entry of the ledger."`
}

// Ref makes the opening balance unique in the ledger for good.
func (a *Account) Ref() string { return "opening:" + a.Merchant + ":" + a.Currency }

// Unread are the fields of which what is stored cannot be read.
func (u unread) Unread() []string { return u }

// without are the fields that cannot be read, but for secrets and addresses which nobody
// gives anew: they stay as they are stored.
func (u unread) without(still unread) unread {
	return slices.DeleteFunc(slices.Clone(u), func(w string) bool {
		return (w == "signing_secret" || w == "allow_ips") && slices.Contains(still, w)
	})
}

// Rate is so many a second; 0 = no limit.
type Rate int64

// Channel is how an address is reached.
type Channel string

// Followed are the merchants of which a subscription hears; nil = all.
type Followed []string

// Schedule is the waits between attempts, with the preset's name or "list".
type Schedule struct {
	Name  string
	Waits []time.Duration
}

func (s Schedule) String() string {
	if s.Name != "list" {
		return s.Name
	}
	return "[" + strings.Join(s.Texts(), ", ") + "]"
}

// Texts are the waits, such as 30s.
func (s Schedule) Texts() []string {
	texts := make([]string, len(s.Waits))
	for i, w := range s.Waits {
		texts[i] = durationText(w)
	}
	return texts
}

// Secret is a secret as it is declared, or as it is stored: sealed or, of an API key,
// hashed. It prints as nothing but whether it is set.
type Secret struct {
	plain  string
	stored string
}

// NewSecret is a secret as somebody gives it; signing secrets begin with whsec_.
func NewSecret(plain string) Secret { return Secret{plain: plain} }

// NewAPIKey is an API key as somebody gives it.
func NewAPIKey(plain string) Secret { return Secret{plain: plain, stored: seal.HashToken(plain)} }

// IsSet says whether there is one.
func (s Secret) IsSet() bool { return s != Secret{} }

// Plain is the secret itself; "" where it does not open here.
func (s Secret) Plain() string { return s.plain }

// Same says that both are known to be the same.
func (s Secret) Same(as Secret) bool {
	if s.plain != "" && as.plain != "" {
		return s.plain == as.plain
	}
	return s.stored == as.stored && s.IsSet() == as.IsSet()
}

func (s Secret) String() string {
	if s.IsSet() {
		return "set"
	}
	return "unset"
}

// GoString keeps %#v from printing it.
func (s Secret) GoString() string { return s.String() }

// MarshalText keeps it out of JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
