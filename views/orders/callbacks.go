package orders

import "backstop/internal/base/text"

var tRefusedNote = text.Text{
	ZH: "这个回调验证未通过，已被拒绝：没有改变任何订单，只保留一部分内容。",
	EN: "This callback was rejected: it changed no order, and only part of it is stored.",
}
