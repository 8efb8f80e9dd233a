package views

import (
	"backstop/internal/breaker"
	"backstop/internal/callback"
	"backstop/internal/compensation"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/payment"
)

// state is how a state of the domain looks: a mood, an icon and a word, never a
// colour alone.
type state struct {
	kind string // ok, warn, bad, comp, info or idle
	icon string
	word word
}

// unknownState is what this version does not know; the code is shown as it is.
func unknownState(code string) state { return state{"idle", "clock", word{code, code}} }

func look[C ~string](states map[string]state, code C) state {
	if s, ok := states[string(code)]; ok {
		return s
	}
	return unknownState(string(code))
}

var orderStates = map[string]state{
	string(order.Pending): {"idle", "clock", tPending},
	string(order.Paying):  {"info", "arrow-right-left", tPaying},
	string(order.Closing): {"warn", "hourglass", tClosing},
	string(order.Paid):    {"ok", "check", tPaid},
	string(order.Failed):  {"bad", "x", tFailed},
	string(order.Closed):  {"idle", "ban", tClosed},
}

// toldStates are the words of an order's notify_status.
var toldStates = map[string]state{
	"none":      {"idle", "bell-ring", tToldNone},
	"queued":    {"info", "clock", tQueued},
	"sending":   {"info", "send", tSending},
	"retrying":  {"warn", "refresh-cw", tRetrying},
	"parked":    {"warn", "zap-off", tParked},
	"delivered": {"ok", "check", tDelivered},
	"exhausted": {"bad", "x", tExhausted},
}

var breakerStates = map[string]state{
	string(breaker.Closed):   {"ok", "check", tStoryFlows},
	string(breaker.Open):     {"bad", "zap-off", tStoryParks},
	string(breaker.HalfOpen): {"warn", "flask-conical", tStoryProbes},
}

var deliveryStates = map[string]state{
	string(notify.Queued):    {"info", "clock", tQueued},
	string(notify.Sending):   {"info", "send", tSending},
	string(notify.RetryWait): {"warn", "refresh-cw", tRetrying},
	string(notify.Delivered): {"ok", "check", tDelivered},
	string(notify.Exhausted): {"bad", "x", tExhausted},
	string(notify.Skipped):   {"idle", "ban", tSkipped},
}

var exceptionStates = map[string]state{
	"open":      {"bad", "triangle-alert", tOpen},
	"assigned":  {"warn", "user", tAssigned},
	"proposed":  {"warn", "hourglass", tProposed},
	"approved":  {"info", "check", tApproved},
	"executing": {"comp", "wrench", tExecuting},
	"resolved":  {"ok", "check", tResolved},
	"failed":    {"bad", "x", tFailed},
	"ignored":   {"idle", "ban", tIgnored},
}

var exceptionKinds = map[string]word{
	compensation.UnknownOrder:          tUnknownOrder,
	compensation.AmountMismatch:        tAmountMismatch,
	compensation.CurrencyMismatch:      tCurrencyMismatch,
	compensation.AccountMismatch:       tAccountMismatch,
	compensation.LatePayment:           tLatePayment,
	compensation.DuplicatePayment:      tDuplicatePayment,
	compensation.UnknownRefund:         tUnknownRefund,
	compensation.DisputeOpened:         tDisputeOpened,
	compensation.UnknownEvent:          tUnknownEvent,
	compensation.DecryptFailed:         tDecryptFailed,
	compensation.Malformed:             tMalformed,
	compensation.NotifyExhausted:       tNotifyExhausted,
	compensation.StuckPaying:           tStuckPaying,
	compensation.SubscriptionExhausted: tSubExhausted,
}

// wordFor is a code in words; what this version does not know is shown as it is.
func wordFor[C ~string](words map[C]word, code C) word {
	if w, ok := words[code]; ok {
		return w
	}
	return word{string(code), string(code)}
}

func kindWord(kind string) word { return wordFor(exceptionKinds, kind) }

// outcomes are what came of a callback: of the payment, or refused at the door.
var outcomes = map[string]state{
	payment.Paid:              {"ok", "check", tPaid},
	payment.Repeat:            {"idle", "git-compare", tRepeat},
	payment.Ignored:           {"idle", "ban", tNothingToDo},
	payment.FailedTry:         {"warn", "x", tFailedTry},
	payment.OrderFailed:       {"bad", "x", tFailed},
	payment.OrderClosed:       {"idle", "ban", tClosed},
	callback.UnknownSupplier:  {"bad", "shield-alert", tUnknownSupplier},
	callback.DisabledSupplier: {"bad", "shield-alert", tDisabledSupplier},
	callback.WrongAddress:     {"bad", "shield-alert", tWrongAddress},
	callback.BadSignature:     {"bad", "shield-alert", tBadSignature},
	callback.Unparsable:       {"bad", "shield-alert", tUnparsable},
	callback.AdapterFailed:    {"bad", "triangle-alert", tAdapterFailed},
	callback.Unavailable:      {"warn", "hourglass", tUnavailable},
}

func outcomeState(outcome string) state {
	if w, ok := exceptionKinds[outcome]; ok {
		return state{"warn", "triangle-alert", w}
	}
	return look(outcomes, outcome)
}

var causes = map[order.Cause]word{
	order.Created:    tCauseCreated,
	order.PayStarted: tCausePay,
	order.ByCallback: tCauseCallback,
	order.ByTimeout:  tCauseTimeout,
	order.ByCancel:   tCauseCancel,
	order.ByGrace:    tCauseGrace,
	order.Imported:   tCauseImported,
	order.BySupplier: tCauseSupplier,
}

func causeWord(c order.Cause) word { return wordFor(causes, c) }

var classes = map[notify.Class]word{
	notify.OK:         tClassOK,
	notify.BadStatus:  tClassBadStatus,
	notify.BadText:    tClassBadText,
	notify.Timeout:    tClassTimeout,
	notify.Cancelled:  tClassCancelled,
	notify.DNS:        tClassDNS,
	notify.Connect:    tClassConnect,
	notify.TLS:        tClassTLS,
	notify.Broken:     tClassBroken,
	notify.Blocked:    tClassBlocked,
	notify.BadAddress: tClassBadAddress,
	notify.Internal:   tClassInternal,

	notify.Refused:      tClassRefused,
	notify.NotConnected: tClassNotConnected,

	notify.Locked:      tClassLocked,
	notify.NoChannel:   tClassNoChannel,
	notify.BlockedHere: tClassBlockedHere,
}

func classWord(c notify.Class) word { return wordFor(classes, c) }
