package app

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/alert"
	"backstop/internal/approval"
	"backstop/internal/base/config"
	"backstop/internal/base/db"
	"backstop/internal/base/egress"
	"backstop/internal/base/seal"
	"backstop/internal/base/text"
	"backstop/internal/callback"
	"backstop/internal/compensation"
	"backstop/internal/compensation/resend"
	"backstop/internal/console"
	"backstop/internal/decision"
	"backstop/internal/exception"
	"backstop/internal/inbox"
	"backstop/internal/ledger"
	"backstop/internal/notify"
	"backstop/internal/notify/amqp"
	"backstop/internal/notify/email"
	"backstop/internal/notify/kafka"
	"backstop/internal/notify/sms"
	"backstop/internal/notify/webhook"
	"backstop/internal/notify/websocket"
	"backstop/internal/operator"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/sandbox"
	"backstop/internal/settings"
	"backstop/internal/settings/apply"
	"backstop/internal/supplier"
	"backstop/internal/supplier/alipay"
	"backstop/internal/supplier/sortedparams"
	"backstop/internal/supplier/stripe"
	"backstop/internal/supplier/wechatpay"
	"backstop/internal/sweep"
	"backstop/internal/testmode"
)

// Kinds returns the kinds of suppliers. A new kind is a folder and a line here.
func Kinds() supplier.Kinds {
	return supplier.Kinds{wechatpay.Kind, alipay.Kind, stripe.Kind, sortedparams.Kind}
}

// kinds returns the kinds of suppliers of this application.
func (a *App) kinds() supplier.Kinds {
	all := Kinds()
	for i, k := range all {
		if a.o.Test && k.Name == sortedparams.Kind.Name {
			all[i] = testmode.Kind(a.URL)
		}
	}
	return all
}

// Texts returns the texts that rows store by code, of the core and of each kind of supplier.
func Texts() text.Catalog {
	all := []*text.Codes{&supplier.Texts, &callback.Texts, &payment.Texts, &sweep.Texts}
	for _, kind := range Kinds() {
		all = append(all, kind.Texts)
	}
	return text.Join(all...)
}

// channels returns the channels over which merchants are notified.
func channels(out *egress.Client, sockets *websocket.Hub) map[string]notify.Channel {
	return map[string]notify.Channel{
		notify.Webhook:   webhook.New(out),
		notify.Websocket: sockets,
		notify.AMQP:      amqp.New(out),
		notify.Kafka:     kafka.New(out),
		notify.Email:     email.New(out),
		notify.SMS:       sms.New(out),
	}
}

func newPolicy() *access.Policy {
	policy, err := access.NewPolicy()
	if err != nil {
		panic(err) // the policy is part of the binary: this is a bug
	}
	return policy
}

// acts returns all acts of operators and services. To add one, declare a Kind in the package
// that owns the effect and list it here.
func (a *App) acts(channels map[string]notify.Channel, operators *access.Operators) *act.Registry {
	assignable := func(ctx context.Context) ([]string, error) {
		return operators.WhoMay(ctx, a.policy, access.AssignExceptions)
	}
	return act.New(a.db, a.audit, a.policy, slices.Concat(
		a.notes().Deliver(order.Acts, order.NoteAct, access.ViewOrders),
		a.advance.Acts(a.compensateSchedule()),
		a.sending(channels).Kinds(),
		a.batches.Acts(),
		a.breakers.Acts(),
		a.pauses.Acts(),
		a.notes().Deliver(exception.Acts(a.db, assignable), exception.NoteAct, access.ViewExceptions),
		a.disputes.Acts(),
		alert.Acts(a.db, a.alertTargets),
		alert.IncidentActs(a.db, func(ctx context.Context) ([]string, error) {
			return operators.WhoMay(ctx, a.policy, access.HandleAlerts)
		}),
		a.redriving().Kinds(),
		[]act.Kind{a.processor.Closing(), decision.Redrive(a.redriving().Running(), a.sending(channels).Resending())},
		resend.Acts(a.db, a.compensateSchedule()),
		sandbox.Acts(a.db),
		[]act.Kind{apply.SandboxAct(a.applies)}, apply.EditActs(a.applies), apply.RotateActs(a.applies),
		testmode.KeyActs(a.test),
		a.views.Kinds(),
		console.UnmaskActs,
		operator.Kinds(operators),
		sweep.Acts{DB: a.db, Days: a.o.Config.SweepDays, Nudge: a.nudgeSweep}.Kinds(),
	)...)
}

func (a *App) notes() inbox.Notes { return inbox.Notes{DB: a.db, Policy: a.policy} }

func (a *App) sending(channels map[string]notify.Channel) notify.Acts {
	return notify.Acts{
		DB: a.db, Directory: a.settings.Merchants, Breakers: a.breakers, Nudge: a.nudger.Now,
		Pings: notify.Pinger{DB: a.db, Channels: channels},
	}
}

func (a *App) redriving() compensation.Acts {
	return compensation.Acts{DB: a.db, Schedule: a.compensateSchedule(), Nudge: a.nudgeCompensations}
}

// Targets returns the check of an endpoint's URL for each channel except webhooks.
func Targets() map[string]func(url string) error {
	return map[string]func(string) error{
		notify.Websocket: websocket.CheckTarget,
		notify.AMQP:      amqp.CheckTarget,
		notify.Kafka:     kafka.CheckTarget,
		notify.Email:     email.CheckTarget,
		notify.SMS:       sms.CheckTarget,
	}
}

// Credentials returns the check of credentials for each channel that needs some.
func Credentials() map[string]func(map[string]string) error {
	return map[string]func(map[string]string) error{
		notify.Email: email.CheckServer,
		notify.SMS:   sms.CheckCredentials,
	}
}

// desk returns the desk for decisions that need two people.
func (a *App) desk(operators *access.Operators) *approval.Desk {
	return approval.NewDesk(approval.Options{
		DB: a.db, Audit: a.audit, Policy: a.policy, Rules: a.settings.Rules, Life: a.o.Config.ApprovalExpires, Operators: operators,
		Log: a.o.Log,
	}, decision.All(decision.Options{
		DB: a.db, Settings: a.settings, Payments: a.processor, Querier: a.advance, Refunds: a.refunds,
	}, a.ledger, a.payouts, a.batches, a.applies)...)
}

func (a *App) openApplies(context.Context) (err error) {
	a.applies, err = Applies(a.o.Config, a.db, a.keys)
	a.applies.Kinds = a.kinds()
	return err
}

// Applies returns the environment of `apply`. Errors: ErrUsage.
func Applies(c config.Config, d *db.DB, keys *seal.Keyring) (apply.Env, error) {
	schedule, err := apply.ParseSchedule(c.NotifySchedule)
	if err != nil {
		return apply.Env{}, fmt.Errorf("%w: BACKSTOP_NOTIFY_SCHEDULE: %w", ErrUsage, err)
	}
	return apply.Env{
		DB: d, Keys: keys, Kinds: Kinds(), Ledger: ledger.New(d),
		CheckURL: egress.NewRules(c.NotifyAllowCIDRs).CheckURL, Channels: Targets(), Credentials: Credentials(), Life: c.ApprovalExpires,
		Defaults: settings.Defaults{Schedule: schedule, Timeout: c.NotifyTimeout, MaxInFlight: c.NotifyMaxInFlight},
		TestMode: c.TestListen != "",
	}, nil
}

// wakeTime bounds the release of notifications that waited for a merchant's connection.
const wakeTime = 5 * time.Second

// openChannels creates the channels and registers those with connections for closing.
func (a *App) openChannels(out *egress.Client) map[string]notify.Channel {
	a.sockets = websocket.New()
	all := channels(out, a.sockets)
	for _, channel := range all {
		if c, ok := channel.(io.Closer); ok {
			a.closing(func() { _ = c.Close() })
		}
	}
	return all
}

// connected makes the notifications due that wait for a merchant's connection to this node.
func (a *App) connected(d *notify.Dispatcher, merchantID int64) {
	ctx, cancel := context.WithTimeout(context.Background(), wakeTime)
	defer cancel()
	woken, err := notify.Wake(ctx, a.db, merchantID)
	if err != nil {
		a.o.Log.Error("a merchant connected, but its waiting notifications could not be made due; they are sent on schedule", "merchant_id",
			merchantID, "error", err)
	}
	a.o.Log.Info("connect", "merchant_id", merchantID, "released", woken)
	d.Pull([]int64{merchantID})
}
