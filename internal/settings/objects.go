package settings

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"backstop/internal/base/seal"
	"backstop/internal/ledger/fact"
)

// The objects of the apply file. Their tags are the only description of its fields (see Field);
// the rows are their stored form.

// code is the form of objects' codes in URLs and the API.
var code = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// File is the whole apply file.
type File struct {
	Suppliers      []Supplier      `apply:"suppliers" doc:"The payment suppliers that send callbacks." doc_zh:"发送回调的支付渠道。" label:"Suppliers" label_zh:"渠道"`
	Merchants      []Merchant      `apply:"merchants" doc:"The merchants, and how they are notified." doc_zh:"商户及其通知方式。" label:"Merchants" label_zh:"商户"`
	SKUs           []SKU           `apply:"skus" doc:"Articles with limited stock." doc_zh:"有限库存的商品。" label:"Stock" label_zh:"库存"`
	Accounts       []Account       `apply:"accounts" doc:"Opening balances of merchants." doc_zh:"商户的期初余额。" label:"Opening balances" label_zh:"期初余额"`
	Subscriptions  []Subscription  `apply:"subscriptions" doc:"Systems of your own that are notified of merchants' orders." doc_zh:"自有系统，接收商户订单的通知。" label:"Subscriptions" label_zh:"订阅"`
	PayoutAccounts []PayoutAccount `apply:"payout_accounts" doc:"The accounts of merchants that payouts may go to. Payouts to any other account are rejected." doc_zh:"商户可以出款到的账户；其他账户的出款一律拒绝。" label:"Payout accounts" label_zh:"收款账户"`
	Roles          []Role          `apply:"roles" doc:"Roles of operators, besides the built-in ones." doc_zh:"内置角色之外的自定义角色。" label:"Roles" label_zh:"角色"`
	Approval       *Approval       `apply:"approval" doc:"When decisions and changes need a second person." doc_zh:"哪些决定和变更需要第二人复核。" label:"Approval rules" label_zh:"复核规则"`
}

// Supplier is a payment supplier.
type Supplier struct {
	Code             string         `apply:"code" id:"true" form:"code" max:"64" need:"missing" example:"quickpay" doc:"Its code; its callbacks are sent to /callback/CODE." doc_zh:"渠道代码；它的回调发往 /callback/代码。" label:"Code" label_zh:"代码"`
	Name             string         `apply:"name" empty:"its code" example:"QuickPay" doc:"Its display name." doc_zh:"显示名称。" label:"Name" label_zh:"名称"`
	Kind             string         `apply:"kind" waits:"true" need:"missing" example:"sortedparams" doc:"Its protocol: wechatpay, alipay, stripe or sortedparams." doc_zh:"协议：wechatpay、alipay、stripe 或 sortedparams。" label:"Kind" label_zh:"类型"`
	Enabled          bool           `apply:"enabled" default:"true" example:"true" doc:"Whether new orders and payments may use it. If false, callbacks for existing ones are still accepted, and they are still queried and closed." doc_zh:"是否用于新订单和新支付。停用后，已有订单的回调仍然接收，仍会查单和关单。" label:"Enabled" label_zh:"启用"`
	AllowIPs         []netip.Prefix `apply:"allow_ips" waits:"true" many:"ranges" max:"1000" empty:"any address" example:"[101.226.103.0/25, 203.0.113.7]" doc:"The addresses from which it sends callbacks: ranges, or single addresses." doc_zh:"回调的来源地址：网段或单个地址。" label:"Allowed addresses" label_zh:"来源白名单"`
	Config           map[string]any `apply:"config" waits:"true" empty:"no settings" example:"{ format: form, algorithm: md5, key: 'file:secrets/quickpay-key', key_append: '&key={key}', order_field: out_trade_no, trade_field: trade_no, amount_field: money, currency: CNY, status_field: trade_status, paid_values: [TRADE_SUCCESS] }" doc:"The settings of its kind. Replaced as a whole; any value may be file:PATH." doc_zh:"该类型的参数。" label:"Protocol settings" label_zh:"协议参数"`
	QueryAfter       time.Duration  `apply:"query_after" min:"1s" max:"24h" default:"2m" example:"5m" doc:"How old a payment must be before the answer not found means that it is unpaid." doc_zh:"支付发起多久之后，查单答复“不存在”才算未付。" label:"Not found means unpaid after" label_zh:"查无此单视为未付"`
	QueryRate        Rate           `apply:"query_rate" min:"1" max:"100000" default:"50/s" example:"20/s" doc:"Calls to it per second, from all nodes together." doc_zh:"所有节点合计每秒调用次数。" label:"Max. call rate" label_zh:"调用速率上限"`
	Fees             Fee            `apply:"fees" waits:"true" empty:"no cost" example:"{ rate: '0.6%', min: 1, refund: return }" doc:"What it charges for each payment. A change applies to orders created after it. Replaced as a whole." doc_zh:"渠道对每笔支付的收费。变更只用于之后创建的订单；整体替换。" label:"Costs" label_zh:"渠道成本"`
	QueryPending     bool           `apply:"ask_pending" default:"true" example:"false" doc:"Whether to query the supplier before closing an order for which pay was never called." doc_zh:"关闭从未发起支付的订单之前是否查单。" label:"Query before closing" label_zh:"关单前查单"`
	RefundRepeat     bool           `apply:"refund_repeat" default:"false" example:"true" doc:"Whether the supplier never forgets a refund's number, so that a refund that it does not find may be sent again. Used only for sortedparams." doc_zh:"渠道是否永远记得退款单号，因而查不到的退款可以重发。仅用于 sortedparams。" label:"Refunds may be repeated" label_zh:"退款可重发"`
	PayoutQueryAfter time.Duration  `apply:"payout_query_after" min:"1s" max:"168h" default:"30m" example:"1h" doc:"How long after the last call for a payout the answer failed is final. It is queried once more then." doc_zh:"最后一次调用之后多久，“失败”才算最终结果；届时再查一次。" label:"Failed payouts are final after" label_zh:"出款失败的确认时间"`
	PayoutRepeat     bool           `apply:"payout_repeat" default:"false" example:"true" doc:"Whether the supplier never forgets a payout's number, so that a payout that it does not find may be sent again. A supplier that does forget would pay twice. Used only for sortedparams." doc_zh:"渠道是否永远记得出款单号，因而查不到的出款可以重发；会忘记单号的渠道将重复付款。仅用于 sortedparams。" label:"Payouts may be repeated" label_zh:"出款可重发"`

	account string // account at the supplier, as named by its kind
	unread
}

// Merchant is a merchant.
type Merchant struct {
	Code           string         `apply:"code" id:"true" form:"code" max:"64" need:"missing" example:"m1" doc:"Its code." doc_zh:"商户代码。" label:"Code" label_zh:"代码"`
	Name           string         `apply:"name" empty:"its code" example:"Galaxy Mall" doc:"Its display name." doc_zh:"显示名称。" label:"Name" label_zh:"名称"`
	APIKey         Secret         `apply:"api_key" waits:"true" form:"key" max:"200" empty:"it cannot call the API" example:"file:secrets/m1-api-key" doc:"Its key for the API: a random text of at least 20 characters (openssl rand -hex 24). Stored hashed." doc_zh:"调用 API 的密钥：至少 20 个字符的随机文本。只保存哈希。" label:"API key" label_zh:"API 密钥"`
	SigningSecrets []Secret       `apply:"signing_secret" waits:"true" empty:"required in a new merchant" example:"file:secrets/m1-signing" doc:"The secret that signs its notifications: whsec_ and the base64 of 24 to 64 bytes. During rotation write signing_secrets: [new, old] instead." doc_zh:"给通知签名的密钥：whsec_ 加 24 到 64 字节的 base64。" label:"Signing secret" label_zh:"签名密钥"`
	Notify         Notify         `apply:"notify" empty:"all defaults" example:"{ urls: [https://m1.example/notify] }" doc:"How it is notified." doc_zh:"通知方式。" label:"Notifications" label_zh:"通知"`
	Fees           []MerchantFee  `apply:"fees" waits:"true" many:"rules" max:"200" empty:"no fees" example:"[{ supplier: '*', rate: '1.2%', fixed: 10, min: 1 }]" doc:"Its fees for each payment, by supplier. A change applies to orders created after it. The list is replaced as a whole." doc_zh:"按渠道对每笔支付收取的手续费。变更只用于之后创建的订单；列表整体替换。" label:"Fees" label_zh:"手续费"`
	Limits         []Limit        `apply:"limits" waits:"true" many:"currencies" max:"200" empty:"the defaults below" example:"[{ currency: CNY, refund_auto: 100000 }]" doc:"Its limits, by currency. The list is replaced as a whole." doc_zh:"按币种的限额；列表整体替换。" label:"Limits" label_zh:"限额"`
	PayoutFees     []PayoutFee    `apply:"payout_fees" waits:"true" many:"rules" max:"200" empty:"no fees" example:"[{ supplier: '*', fixed: 100 }]" doc:"Its fees for each payout, by supplier, in addition to the amount. A change applies to payouts requested after it. The list is replaced as a whole." doc_zh:"按渠道对每笔出款另收的手续费。变更只用于之后申请的出款；列表整体替换。" label:"Payout fees" label_zh:"出款手续费"`
	RefundWindow   time.Duration  `apply:"refund_window" min:"1h" max:"26280h" default:"4320h" example:"2160h" doc:"How long after it was paid an order can be refunded." doc_zh:"订单支付后多久之内可以退款。" label:"Refund window" label_zh:"退款期"`
	PayoutKey      Secret         `apply:"payout_key" waits:"true" form:"key" max:"200" empty:"it cannot request payouts" example:"file:secrets/m1-payout-key" doc:"Its key for requesting and cancelling payouts, which api_key cannot do: a random text of at least 20 characters. Stored hashed." doc_zh:"申请和取消出款的密钥，api_key 无此权限：至少 20 个字符的随机文本。只保存哈希。" label:"Payout key" label_zh:"出款密钥"`
	PayoutIPs      []netip.Prefix `apply:"payout_ips" waits:"true" many:"ranges" max:"1000" empty:"any address" example:"[203.0.113.0/24]" doc:"The client addresses that may use payout_key to request and cancel payouts: ranges, or single addresses." doc_zh:"可以用 payout_key 申请和取消出款的客户端地址：网段或单个地址。" label:"Payout addresses" label_zh:"出款来源地址"`
	ResendWhenBack bool           `apply:"resend_when_back" default:"true" example:"false" doc:"Whether notifications that ran out of attempts within the last 72h are sent once more when its breaker closes." doc_zh:"熔断解除时，是否把最近 72 小时内重试耗尽的通知再发一次。" label:"Resend when back" label_zh:"恢复后补发"`

	recipient
}

// Subscription is one of the operator's own systems, notified like a merchant.
type Subscription struct {
	Code           string   `apply:"code" id:"true" form:"code" max:"64" need:"missing" example:"warehouse" doc:"Its code." doc_zh:"订阅代码。" label:"Code" label_zh:"代码"`
	Name           string   `apply:"name" empty:"its code" example:"Warehouse" doc:"Its display name." doc_zh:"显示名称。" label:"Name" label_zh:"名称"`
	Enabled        bool     `apply:"enabled" default:"true" example:"true" doc:"Whether it is notified." doc_zh:"是否通知它。" label:"Enabled" label_zh:"启用"`
	Merchants      Followed `apply:"merchants" default:"all" example:"[m1]" doc:"The merchants whose orders it is notified of: all, or a list of codes." doc_zh:"接收哪些商户的订单：all，或商户代码的列表。" label:"Merchants" label_zh:"商户"`
	SigningSecrets []Secret `apply:"signing_secret" waits:"true" empty:"required where it has webhooks" example:"file:secrets/warehouse-signing" doc:"As for a merchant, including signing_secrets: [new, old]." doc_zh:"同商户的签名密钥。" label:"Signing secret" label_zh:"签名密钥"`
	Notify

	recipient
}

// recipient is what merchants and subscriptions have in common besides their fields.
type recipient struct {
	unread
	disabled []string // disabled endpoints
}

// Enable enables disabled endpoints that the file declares.
func (r *recipient) Enable(declared func(endpoint string) bool) {
	r.disabled = slices.DeleteFunc(slices.Clone(r.disabled), declared)
}

// Disabled returns the disabled endpoints.
func (r *recipient) Disabled() []string { return r.disabled }

// unread are the fields whose stored value cannot be read.
type unread []string

// SetNew records that a field has a new value.
func (u *unread) SetNew(word string) {
	*u = slices.DeleteFunc(slices.Clone(*u), func(w string) bool { return w == word })
}

// Notify is how a merchant or a subscription is notified.
type Notify struct {
	URLs        []string      `apply:"urls" waits:"true" form:"url" many:"addresses" max:"10" empty:"none" example:"[https://m1.example/notify]" doc:"Plain webhook endpoints, tried in turn: used where an order has no notify_url." doc_zh:"普通 webhook 地址，依次使用；订单自带 notify_url 时不用。" label:"Endpoints" label_zh:"通知地址"`
	Ack         string        `apply:"ack" oneof:"status text" default:"status" example:"text" doc:"What counts as delivered: any status 2xx, or 2xx and a body equal to ack_text." doc_zh:"怎样算送达：任意 2xx，或 2xx 且正文等于 ack_text。" label:"Counts as delivered" label_zh:"成功标准"`
	AckText     string        `apply:"ack_text" max:"256" default:"success" example:"OK" doc:"The body of an answer that acknowledges, for ack: text." doc_zh:"ack 为 text 时，表示成功的应答正文。" label:"Acknowledging text" label_zh:"成功应答正文"`
	Format      string        `apply:"format" oneof:"standard form form-md5" default:"standard" example:"form" doc:"The body of a webhook: JSON with Standard Webhooks' signature, or sorted parameters signed with HMAC-SHA256 or MD5." doc_zh:"通知正文：带 Standard Webhooks 签名的 JSON，或用 HMAC-SHA256 或 MD5 签名的排序参数。" label:"Format" label_zh:"格式"`
	Schedule    Schedule      `apply:"schedule" default:"BACKSTOP_NOTIFY_SCHEDULE" example:"[1s, 3s, 5s]" doc:"The waits between attempts, each from the end of the one before: day, quick, or a list of at most 50 waits of 100ms to 24h, 168h in all." doc_zh:"两次尝试之间的等待，从上一次结束算起：day、quick，或最多 50 个 100ms 到 24h 的等待，合计不超过 168h。" label:"Schedule" label_zh:"重试计划"`
	Timeout     time.Duration `apply:"timeout" min:"1s" max:"10s" default:"BACKSTOP_NOTIFY_TIMEOUT" example:"5s" doc:"The time limit of one attempt." doc_zh:"一次尝试的时限。" label:"Timeout" label_zh:"超时"`
	MaxInFlight int           `apply:"max_in_flight" min:"1" max:"1000" default:"BACKSTOP_NOTIFY_MAX_IN_FLIGHT" example:"20" doc:"Concurrent attempts on each node." doc_zh:"每个节点同时进行的尝试数。" label:"Max. in flight" label_zh:"并发上限"`
	RateLimit   Rate          `apply:"rate_limit" min:"1" max:"100000" empty:"no limit" example:"50/s" doc:"Attempts per second, from all nodes together." doc_zh:"所有节点合计每秒尝试次数。" label:"Max. rate" label_zh:"速率上限"`
	Breaker     Breaker       `apply:"breaker" empty:"the program's settings" example:"{ failures: 3, open: 60s }" doc:"When the breaker opens. Replaced as a whole." doc_zh:"何时熔断；整体替换。" label:"Breaker" label_zh:"熔断器"`
	Events      []string      `apply:"events" many:"types" max:"100" empty:"all" example:"[order.paid, order.closed]" doc:"The event types that are sent; others are recorded as skipped." doc_zh:"要发送的事件类型；其他的记为未发送。" label:"Event types" label_zh:"事件类型"`
	Balance     string        `apply:"balance" oneof:"failover weighted all" default:"failover" example:"weighted" doc:"Which endpoint of a channel an attempt uses: the next in turn, one by weight, or all, each with attempts of its own." doc_zh:"一次尝试使用哪个地址：下一个、按权重选一个，或全部（各自独立重试）。" label:"Use of endpoints" label_zh:"地址选择"`
	Endpoints   []Endpoint    `apply:"endpoints" waits:"true" many:"addresses" max:"20" empty:"none" example:"[{ name: backup, url: https://backup.m1.example/notify }]" doc:"Endpoints in addition to urls. The list is replaced as a whole." doc_zh:"urls 之外的地址；列表整体替换。" label:"More endpoints" label_zh:"其他地址"`
}

// Breaker holds the limits of a recipient's circuit breaker.
type Breaker struct {
	Failures   int           `apply:"failures" min:"1" max:"1000" empty:"BACKSTOP_BREAKER_FAILURES" example:"3" doc:"Failures in a row that open it."`
	Open       time.Duration `apply:"open" min:"1s" max:"24h" empty:"BACKSTOP_BREAKER_OPEN" example:"60s" doc:"How long it stays open before one notification is sent as a probe."`
	Rate       *int          `apply:"rate" min:"0" max:"100" empty:"BACKSTOP_BREAKER_RATE" example:"50" doc:"Percentage of failures within window that also opens it; 0 = no percentage does."`
	Window     time.Duration `apply:"window" min:"1s" max:"1h" empty:"BACKSTOP_BREAKER_WINDOW" example:"30s" doc:"The time span of rate."`
	MinSamples int           `apply:"least" min:"1" max:"100000" empty:"BACKSTOP_BREAKER_LEAST" example:"10" doc:"Minimum number of results within window; with fewer, rate does not apply."`
	Slow       time.Duration `apply:"slow" min:"100ms" max:"10s" empty:"slow answers do not count" example:"5s" doc:"An answer that takes longer counts as a failure."`
}

// Endpoint is one endpoint in addition to the plain ones.
type Endpoint struct {
	Name        string            `apply:"name" form:"code" max:"64" need:"missing" example:"backup" doc:"Its name, unique within the entry."`
	Channel     Channel           `apply:"channel" default:"webhook" example:"webhook" doc:"Its channel: webhook, websocket, amqp, kafka, email or sms; a subscription has no websocket."`
	URL         string            `apply:"url" form:"url" max:"2048" need:"missing" example:"https://backup.m1.example/notify" doc:"Its address, in the form of its channel. Logins belong in credentials."`
	Events      []string          `apply:"events" many:"types" max:"100" empty:"all that the entry gets" example:"[order.paid]" doc:"The event types that are sent here."`
	Weight      int               `apply:"weight" min:"1" max:"100" default:"1" example:"5" doc:"Its share, with balance: weighted."`
	Headers     map[string]Secret `apply:"headers" max:"20" empty:"none" example:"{ X-Tenant: seven }" doc:"Additional headers, up to 4096 bytes each. Stored sealed."`
	Credentials map[string]Secret `apply:"credentials" max:"20" empty:"the stored ones, else none" example:"{ form_key: 'file:secrets/form-key' }" doc:"The credentials of its channel, up to 4096 bytes each. Stored sealed; left out, they stay."`
	ClientCert  string            `apply:"client_cert" form:"pem" max:"65536" empty:"none" example:"file:m1-client.pem" doc:"Client certificate for mTLS, PEM."`
	ClientKey   Secret            `apply:"client_key" form:"pem" max:"65536" empty:"the stored one, else none" example:"file:secrets/m1-client-key.pem" doc:"The key of client_cert, PEM. Stored sealed; left out, it stays."`
	Format      string            `apply:"format" oneof:"standard form form-md5" empty:"as for urls" example:"form" doc:"The format of its body."`
	Digest      time.Duration     `apply:"digest" min:"10s" max:"24h" empty:"each event at once" example:"1h" doc:"Combines the events of this time span into one mail, for channel: email."`
}

// SKU is an article.
type SKU struct {
	SKU   string `apply:"sku" id:"true" need:"missing" example:"SKU-1" doc:"Its number, as used in orders." doc_zh:"订单里使用的编号。" label:"SKU" label_zh:"商品编号"`
	Stock int64  `apply:"stock" min:"0" max:"1000000000000" need:"missing" example:"100" doc:"Initial quantity. The current stock is never overwritten." doc_zh:"初始数量；当前库存从不被覆盖。" label:"Initial stock" label_zh:"初始库存"`
}

// Account is a merchant's opening balance in one currency.
type Account struct {
	Merchant string `apply:"merchant" id:"true" form:"code" max:"64" need:"missing" example:"m1" doc:"The merchant's code."`
	Currency string `apply:"currency" id:"true" need:"missing" example:"CNY" doc:"ISO 4217."`
	Balance  int64  `apply:"balance" min:"0" max:"1000000000000000" need:"missing: the opening balance in minor units" example:"1000000" doc:"The opening balance in minor units. Booked once, as a ledger entry."`
}

// PayoutAccount is an account that a merchant's payouts may go to.
type PayoutAccount struct {
	Merchant string `apply:"merchant" id:"true" form:"code" max:"64" need:"missing" example:"m1" doc:"The merchant's code." doc_zh:"商户代码。" label:"Merchant" label_zh:"商户"`
	Code     string `apply:"code" id:"true" form:"code" max:"64" need:"missing" example:"main" doc:"Its code, unique for the merchant; payouts name it." doc_zh:"账户代码，在商户内唯一；出款按它指定账户。" label:"Code" label_zh:"代码"`
	Kind     string `apply:"kind" waits:"true" oneof:"bank_card alipay" need:"missing" example:"bank_card" doc:"What number is: a bank account or card, or a login or user id at Alipay." doc_zh:"账号是什么：银行账户或卡，或支付宝登录号或用户号。" label:"Kind" label_zh:"类型"`
	Holder   string `apply:"holder" waits:"true" max:"200" need:"missing" example:"Galaxy Mall" doc:"The name of its holder, as the bank has it." doc_zh:"银行登记的户名。" label:"Holder" label_zh:"户名"`
	Number   Secret `apply:"number" waits:"true" form:"number" max:"64" need:"missing" example:"file:secrets/m1-payout-account" doc:"Its number. Stored sealed; only its last four characters are shown, or g•••@pay.example of an e-mail address." doc_zh:"账号。加密保存；只显示末四位，邮箱显示为 g•••@pay.example。" label:"Number" label_zh:"账号"`
	Bank     string `apply:"bank" waits:"true" max:"200" empty:"none, but required for bank_card" example:"ICBC" doc:"The bank, as the supplier names it." doc_zh:"渠道使用的银行名称。" label:"Bank" label_zh:"银行"`
	Enabled  bool   `apply:"enabled" waits:"true" default:"true" example:"true" doc:"Whether new payouts may go to it. Payouts that were already debited still go to it." doc_zh:"新的出款能否到这个账户。已扣款的出款仍会到账。" label:"Enabled" label_zh:"启用"`
}

// Role is a role of operators, besides the built-in ones.
type Role struct {
	Name    string   `apply:"name" id:"true" form:"code" max:"64" need:"missing" example:"night" doc:"Its name; no built-in role has it." doc_zh:"角色名称，不能与内置角色相同。" label:"Name" label_zh:"名称"`
	May     []string `apply:"may" waits:"true" many:"permissions" max:"100" empty:"only use one's own account" example:"[order.view, notification.view, notification.resend]" doc:"What it may do: permissions, which /roles lists. operator.manage, settings.propose and settings.approve are left to built-in roles." doc_zh:"权限，见 /roles。operator.manage、settings.propose 和 settings.approve 只属于内置角色。" label:"Permissions" label_zh:"权限"`
	Enabled bool     `apply:"enabled" default:"true" example:"true" doc:"Whether operators can have it. It can be false only while no enabled operator has it." doc_zh:"能否授予操作员。只有没有在用的操作员拥有它时才能停用。" label:"Enabled" label_zh:"启用"`
}

// Ref returns the unique reference of the opening balance in the ledger; "" while merchant or
// currency are missing.
func (a *Account) Ref() string {
	if a.Merchant == "" || a.Currency == "" {
		return ""
	}
	return fact.Ref(fact.Opening, a.values())
}

func (a *Account) values() fact.Values {
	return fact.Values{Merchant: a.Merchant, Currency: a.Currency, Amount: a.Balance}
}

// Unread returns the fields whose stored value cannot be read.
func (u unread) Unread() []string { return u }

// without returns the fields that cannot be read, except secrets and ranges without a new
// value, which stay as stored.
func (u unread) without(still unread) unread {
	return slices.DeleteFunc(slices.Clone(u), func(w string) bool {
		return (w == "signing_secret" || w == "allow_ips" || w == "payout_ips") && slices.Contains(still, w)
	})
}

// Rate is a number per second; 0 = no limit.
type Rate int64

// Channel is the channel of an endpoint.
type Channel string

// Followed are the merchants that a subscription follows; nil = all.
type Followed []string

// Schedule holds the waits between attempts, with the preset's name or "list".
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

// Texts returns the waits, such as 30s.
func (s Schedule) Texts() []string {
	texts := make([]string, len(s.Waits))
	for i, w := range s.Waits {
		texts[i] = durationText(w)
	}
	return texts
}

// Secret is a secret in plain text or in stored form: sealed or, for an API key, hashed. When
// printed it only shows whether it is set.
type Secret struct {
	plain  string
	stored string
}

// NewSecret returns a secret in plain text; signing secrets begin with whsec_.
func NewSecret(plain string) Secret { return Secret{plain: plain} }

// NewAPIKey returns an API key in plain text.
func NewAPIKey(plain string) Secret { return Secret{plain: plain, stored: seal.HashToken(plain)} }

// IsSet reports whether there is a secret.
func (s Secret) IsSet() bool { return s != Secret{} }

// Plain returns the secret in plain text; "" if it cannot be opened here.
func (s Secret) Plain() string { return s.plain }

// Same reports whether both are known to be equal.
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

// GoString keeps %#v from printing the secret.
func (s Secret) GoString() string { return s.String() }

// MarshalText keeps the secret out of JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
