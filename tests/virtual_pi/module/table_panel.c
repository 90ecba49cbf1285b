// SPDX-License-Identifier: GPL-2.0
/*
 * An I2C bus with one pretended OLED on it, for tests.
 *
 * The adapter answers at one address and takes whatever is written there. What a logic analyser
 * would see is read from /dev/table-panel as records, oldest first:
 *
 *	u64 stamp	CLOCK_MONOTONIC in ns, when the bytes had passed
 *	u16 kind	0 written to the panel, 1 the panel lost its power, 2 it has power again
 *	u16 length	of what follows
 *	u8  bytes[length]
 *
 * all in the machine's own byte order. A read takes whole records only; with none waiting it gives
 * 0 bytes, and poll() says when there are some. A record for which there is no room is counted in
 * `lost`, never cut short.
 *
 * The panel is pulled and put back by the parameter `plugged`, and a bus in trouble is made by
 * `fault`, a positive errno with which every transfer then fails: 5 (EIO), 110 (ETIMEDOUT), 121
 * (EREMOTEIO). `hz` lets a transfer take as long as it would on a real bus of that speed.
 */

#include <linux/delay.h>
#include <linux/i2c.h>
#include <linux/kfifo.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

#define LOG_BYTES	(1 << 20)
#define LONGEST		8192	/* i2c-dev takes no longer message */

enum kind { WRITTEN, PULLED, PLUGGED };

struct record {
	u64 stamp;
	u16 kind;
	u16 length;
} __packed;

static int bus = 1;
module_param(bus, int, 0444);
MODULE_PARM_DESC(bus, "number of the I2C bus (default 1)");

static ushort address = 0x3c;
module_param(address, ushort, 0644);
MODULE_PARM_DESC(address, "the panel's address (default 0x3c)");

static uint hz;
module_param(hz, uint, 0644);
MODULE_PARM_DESC(hz, "speed of the bus; 0 (default): at once");

static ushort fault;
module_param(fault, ushort, 0644);
MODULE_PARM_DESC(fault, "errno of every transfer; 0 (default): none");

static ulong lost;
module_param(lost, ulong, 0444);
MODULE_PARM_DESC(lost, "records for which the log had no room");

static bool plugged = true;

static struct kfifo wire_log;
static DEFINE_MUTEX(log_lock);		/* guards wire_log, lost and plugged */
static DECLARE_WAIT_QUEUE_HEAD(news);

/* Call it with log_lock held. */
static void write_down(enum kind kind, const u8 *bytes, u16 length)
{
	struct record head = {
		.stamp = ktime_get_ns(), .kind = kind, .length = length,
	};

	if (kfifo_avail(&wire_log) < sizeof(head) + length) {
		lost++;
		return;
	}
	kfifo_in(&wire_log, &head, sizeof(head));
	if (length)
		kfifo_in(&wire_log, bytes, length);
	wake_up_interruptible(&news);
}

static int set_plugged(const char *text, const struct kernel_param *param)
{
	bool wanted;
	int result = kstrtobool(text, &wanted);

	if (result)
		return result;
	mutex_lock(&log_lock);
	if (wanted != plugged) {
		plugged = wanted;
		write_down(wanted ? PLUGGED : PULLED, NULL, 0);
	}
	mutex_unlock(&log_lock);
	return 0;
}

static const struct kernel_param_ops plugged_ops = {
	.set = set_plugged,
	.get = param_get_bool,
};
module_param_cb(plugged, &plugged_ops, &plugged, 0644);
MODULE_PARM_DESC(plugged, "whether the panel is there");

/* Start and stop, and nine clocks for the address and each byte. */
static void take_time(u16 length)
{
	uint speed = READ_ONCE(hz);
	u64 us;

	if (!speed)
		return;
	us = div_u64(((u64)length + 1) * 9 * USEC_PER_SEC + 2 * USEC_PER_SEC, speed);
	usleep_range(us, us + 50);
}

static int transfer(struct i2c_adapter *adapter, struct i2c_msg *messages, int count)
{
	int i;

	for (i = 0; i < count; i++) {
		struct i2c_msg *message = &messages[i];
		ushort trouble = READ_ONCE(fault);

		take_time(message->len);
		if (trouble)
			return -trouble;
		mutex_lock(&log_lock);
		if (!plugged || message->addr != address) {
			mutex_unlock(&log_lock);
			return -EREMOTEIO;
		}
		if (message->flags & I2C_M_RD)
			/* Status: the display is on, not busy. */
			memset(message->buf, 0, message->len);
		else if (message->len > LONGEST)
			lost++;
		else
			write_down(WRITTEN, message->buf, message->len);
		mutex_unlock(&log_lock);
	}
	return count;
}

static u32 abilities(struct i2c_adapter *adapter)
{
	/* As the Pi's own bus: plain messages, and SMBus made of them but for an empty one. */
	return I2C_FUNC_I2C | (I2C_FUNC_SMBUS_EMUL & ~I2C_FUNC_SMBUS_QUICK);
}

static const struct i2c_algorithm algorithm = {
	.master_xfer = transfer,
	.functionality = abilities,
};

static struct i2c_adapter adapter = {
	.owner = THIS_MODULE,
	.algo = &algorithm,
	.name = "a table's panel, pretended",
};

static ssize_t read_log(struct file *file, char __user *target, size_t room, loff_t *offset)
{
	struct record head;
	unsigned int copied;
	size_t done = 0;
	int result = 0;

	mutex_lock(&log_lock);
	while (kfifo_out_peek(&wire_log, &head, sizeof(head)) == sizeof(head)) {
		size_t whole = sizeof(head) + head.length;

		if (whole > room - done) {
			if (!done)
				result = -EINVAL;	/* room for less than one record */
			break;
		}
		result = kfifo_to_user(&wire_log, target + done, whole, &copied);
		if (result)
			break;
		done += copied;
	}
	mutex_unlock(&log_lock);
	return done ? done : result;
}

static __poll_t poll_log(struct file *file, poll_table *table)
{
	poll_wait(file, &news, table);
	return kfifo_is_empty(&wire_log) ? 0 : EPOLLIN | EPOLLRDNORM;
}

static const struct file_operations log_doors = {
	.owner = THIS_MODULE,
	.read = read_log,
	.poll = poll_log,
	.llseek = noop_llseek,
};

static struct miscdevice log_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "table-panel",
	.fops = &log_doors,
};

static int __init table_panel_init(void)
{
	int result = kfifo_alloc(&wire_log, LOG_BYTES, GFP_KERNEL);

	if (result)
		return result;
	result = misc_register(&log_device);
	if (result)
		goto no_device;
	adapter.nr = bus;
	result = i2c_add_numbered_adapter(&adapter);
	if (result)
		goto no_bus;
	return 0;

no_bus:
	misc_deregister(&log_device);
no_device:
	kfifo_free(&wire_log);
	return result;
}

static void __exit table_panel_exit(void)
{
	i2c_del_adapter(&adapter);
	misc_deregister(&log_device);
	kfifo_free(&wire_log);
}

module_init(table_panel_init);
module_exit(table_panel_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("An I2C bus with a pretended OLED, for tests");
