// Package link holds the addresses of the console's pages, by what a page shows.
package link

import (
	"net/url"
	"strconv"
	"time"

	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/fund"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// SignIn leads to the provider, and from there to a page; again = the person has to sign in anew.
func SignIn(next string, again bool) templ.SafeURL {
	q := url.Values{"next": {next}}
	if again {
		q.Set("again", "1")
	}
	return templ.URL("/login/oidc?" + q.Encode())
}

func Order(no string) templ.SafeURL { return templ.URL("/orders/" + url.PathEscape(no)) }

// CallbackOrder leads to the order that a callback is about. The reference of one without an order
// leads nowhere.
func CallbackOrder(id int64, no string) string {
	if id == 0 {
		return ""
	}
	return string(Order(no))
}

// ExceptionCause leads to the order's story, or to the exception itself where no
// order is behind it.
func ExceptionCause(x exception.Item) templ.SafeURL {
	if x.Kind == exception.CompensationDead {
		return templ.URL("/compensations/" + url.PathEscape(x.Subject))
	}
	if x.OrderID != 0 || x.OrderNo != "" && x.Kind != exception.UnknownOrder {
		return Order(x.OrderNo)
	}
	return templ.URL("/exceptions?kind=" + x.Kind)
}

func Exception(id int64) templ.SafeURL {
	return templ.URL("/exceptions/" + console.ExceptionID(id))
}

func Callback(id int64) templ.SafeURL {
	return templ.URL("/callbacks/" + strconv.FormatInt(id, 10))
}

// Notification leads to a notification; one of a subscriber shares its event
// with the merchant's.
func Notification(d console.Delivery) templ.SafeURL {
	link := "/notifications/" + d.PublicID
	if d.ToSubscriber {
		link += "?delivery=" + strconv.FormatInt(d.ID, 10)
	}
	return templ.URL(link)
}

// Settings leads to the settings of an object, by the section and the code that the apply file has.
func Settings(section, code string) templ.SafeURL {
	switch {
	case section == "merchants" || section == "suppliers":
		return templ.SafeURL("/" + section + "/" + url.PathEscape(code) + "/settings")
	case code == "":
		return templ.SafeURL("/settings/" + section)
	}
	return templ.SafeURL("/settings/" + section + "/" + url.PathEscape(code))
}

// NewObject leads to the form that adds an object to a section.
func NewObject(section string) templ.SafeURL {
	if section == "merchants" || section == "suppliers" {
		return templ.SafeURL("/" + section + "/new")
	}
	return templ.SafeURL("/settings/" + section + "/new")
}

func Merchant(code string) templ.SafeURL { return templ.SafeURL("/merchants/" + Query(code)) }

// MerchantMonth leads to the merchant's statement of the month of a moment.
func MerchantMonth(code string, at time.Time) templ.SafeURL {
	return Merchant(code) + templ.SafeURL("/statement?month="+at.Format(fund.MonthLayout))
}

// Unnotified links to the notifications of paid orders that the merchant has not received yet.
func Unnotified(code string) templ.SafeURL {
	return templ.URL("/notifications?merchant=" + Query(code) + "&risk=untold")
}

// Parked links to the notifications that wait for the merchant's breaker.
func Parked(code string) templ.SafeURL {
	return templ.URL("/notifications?merchant=" + Query(code) + "&status=parked&window=31d")
}

// Awaited links to the orders that wait for a supplier's result.
func Awaited(supplier string) templ.SafeURL { return templ.URL("/orders?awaits=" + Query(supplier)) }

// YourApprovals leads to the proposals that the viewer may decide.
const YourApprovals templ.SafeURL = "/approvals#yours"

func Supplier(code string) templ.SafeURL { return templ.URL("/suppliers/" + url.PathEscape(code)) }

func Refund(no string) templ.SafeURL { return templ.URL("/refunds/" + url.PathEscape(no)) }

func Payout(no string) templ.SafeURL { return templ.URL("/payouts/" + url.PathEscape(no)) }

func Dispute(no string) templ.SafeURL { return templ.URL("/disputes/" + url.PathEscape(no)) }

// Account leads to an account's lines in one currency.
func Account(code, currency string) templ.SafeURL {
	return templ.URL("/accounts/" + url.PathEscape(code) + "/" + url.PathEscape(currency))
}

func Compensation(id int64) templ.SafeURL {
	return templ.URL("/compensations/" + strconv.FormatInt(id, 10))
}

func Approval(id int64) templ.SafeURL {
	return templ.URL("/approvals/apr_" + strconv.FormatInt(id, 10))
}

func Queue(name string) templ.SafeURL { return templ.URL("/queues/" + url.PathEscape(name)) }

// BatchPlan is where a list's rows, picked or all that match, are planned for an action.
func BatchPlan(l ui.List, action string) string {
	path := "/batches/plan/" + l.Spec.Name + "/" + action
	if q := l.Filter().Values.Encode(); q != "" {
		return path + "?" + q
	}
	return path
}

func Query(text string) string { return url.QueryEscape(text) }
