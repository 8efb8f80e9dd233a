package app

import (
	"backstop/internal/base/egress"
	"backstop/internal/notify"
	"backstop/internal/notify/amqp"
	"backstop/internal/notify/email"
	"backstop/internal/notify/kafka"
	"backstop/internal/notify/sms"
	"backstop/internal/notify/webhook"
	"backstop/internal/notify/websocket"
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

// Targets say of each channel beside webhooks which addresses it can use.
func Targets() map[string]func(url string) error {
	return map[string]func(string) error{
		notify.Websocket: websocket.CheckTarget,
		notify.AMQP:      amqp.CheckTarget,
		notify.Kafka:     kafka.CheckTarget,
		notify.Email:     email.CheckTarget,
		notify.SMS:       sms.CheckTarget,
	}
}

// Credentials say of each channel that needs some what is wrong with them.
func Credentials() map[string]func(map[string]string) error {
	return map[string]func(map[string]string) error{
		notify.Email: email.CheckServer,
		notify.SMS:   sms.CheckCredentials,
	}
}
