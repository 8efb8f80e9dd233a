// Package orders draws the pages of orders: their list and story, callbacks, notifications and evidence.
package orders

import "backstop/internal/base/text"

var tRefundStatus = text.Text{ZH: "退款状态", EN: "Refund status"}

var tPaidAt = text.Text{ZH: "支付时间", EN: "Paid at"}
