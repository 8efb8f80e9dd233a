package app

import (
	"backstop/internal/egress"
	"backstop/internal/notify"
	"backstop/internal/notify/amqp"
	"backstop/internal/notify/webhook"
	"backstop/internal/supplier"
	"backstop/internal/supplier/alipay"
	"backstop/internal/supplier/sortedparams"
	"backstop/internal/supplier/stripe"
	"backstop/internal/supplier/wechatpay"
)

// Kinds are the suppliers that this program speaks. A new one is a folder and a
// line here: what runs can be read.
func Kinds() supplier.Kinds {
	return supplier.Kinds{wechatpay.Kind, alipay.Kind, stripe.Kind, sortedparams.Kind}
}

// channels are the ways in which merchants are told.
func channels(out *egress.Client) map[string]notify.Channel {
	return map[string]notify.Channel{notify.Webhook: webhook.New(out), notify.AMQP: amqp.New(out)}
}

// Targets say of each channel beside webhooks which addresses it can use.
func Targets() map[string]func(url string) error {
	return map[string]func(string) error{notify.AMQP: amqp.CheckTarget}
}
