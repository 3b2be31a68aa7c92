// SPDX-License-Identifier: GPL-2.0-only
/*
 * A PCI function with NVIDIA's vendor id on a host bridge of its own, so that
 * nvidia.ko loads on a machine that has no GPU. For virtual machines only.
 *
 * As it stands, the function is a bridge of class "other", which the driver takes
 * for an NVSwitch: enough for it to load. With window= it is a GPU with BARs, which
 * lie in RAM that the kernel was told to leave alone (memmap= on x86, mem= on
 * arm64); then /dev/nvidia0 can be opened, and the driver allocates for itself until
 * the firmware of the GPU doesn't answer.
 */
#include <linux/io.h>
#include <linux/ioport.h>
#include <linux/irq.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/sizes.h>

/* No machine that runs these tests has that many PCI domains of its own. */
#define TEST_DOMAIN		0x7acc

/* A GA100 by its identity and its boot registers. */
#define GPU_DEVICE_ID		0x20b0
#define BRIDGE_DEVICE_ID	0x1ac0
#define GPU_SUBSYSTEM_ID	0x1450
#define GPU_BOOT_0		0x170000a1
#define GPU_BOOT_42		0x170a1000
#define GPU_REG_BOOT_0		0x000
#define GPU_REG_BOOT_42		0xa00

#define REGISTERS_SIZE		SZ_16M
#define FRAMEBUFFER_SIZE	SZ_256M
#define INSTANCE_SIZE		SZ_32M
/* Bridge windows are handed out from naturally aligned places. */
#define WINDOW_SIZE		(FRAMEBUFFER_SIZE + 2 * INSTANCE_SIZE + REGISTERS_SIZE)

#define CAP_PM			0x60
#define CAP_EXP			0x78

static ulong window;
module_param(window, ulong, 0444);
MODULE_PARM_DESC(window, "physical address of unused RAM for a GPU's BARs; 0: no GPU, a bridge without BARs");

/* Configuration space, and which of its bits a write changes. */
static u32 config[PCI_CFG_SPACE_SIZE / 4];
static u32 writable[PCI_CFG_SPACE_SIZE / 4];

static struct pci_host_bridge *bridge;
static int interrupt;

static struct resource window_resource = {
	.name = "umacct_test_pci",
	.flags = IORESOURCE_MEM,
};

static struct resource bus_resource = {
	.name = "umacct_test_pci",
	.flags = IORESOURCE_BUS,
};

#ifdef CONFIG_X86
static struct pci_sysdata sysdata = {
	.domain = TEST_DOMAIN,
	.node = NUMA_NO_NODE,
};
#endif

static u32 access_mask(int where, int size)
{
	return GENMASK(size * 8 - 1, 0) << (where % 4 * 8);
}

static int config_read(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 *value)
{
	if (devfn || where >= PCI_CFG_SPACE_SIZE)
		return PCIBIOS_DEVICE_NOT_FOUND;

	*value = (config[where / 4] & access_mask(where, size)) >> (where % 4 * 8);
	return PCIBIOS_SUCCESSFUL;
}

static int config_write(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 value)
{
	u32 mask;

	if (devfn || where >= PCI_CFG_SPACE_SIZE)
		return PCIBIOS_DEVICE_NOT_FOUND;

	mask = access_mask(where, size) & writable[where / 4];
	config[where / 4] &= ~mask;
	config[where / 4] |= (value << (where % 4 * 8)) & mask;
	return PCIBIOS_SUCCESSFUL;
}

static struct pci_ops config_ops = {
	.read = config_read,
	.write = config_write,
};

static void describe_function(u16 device, u32 class)
{
	config[PCI_VENDOR_ID / 4] = PCI_VENDOR_ID_NVIDIA | device << 16;
	config[PCI_CLASS_REVISION / 4] = class << 8 | 0xa1;
	writable[PCI_COMMAND / 4] = PCI_COMMAND_IO | PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER |
				    PCI_COMMAND_INTX_DISABLE;
}

static void describe_bar(int bar, u32 size, u32 type)
{
	int i = PCI_BASE_ADDRESS_0 / 4 + bar;

	config[i] = type;
	writable[i] = ~(size - 1);
	if (type & PCI_BASE_ADDRESS_MEM_TYPE_64)
		writable[i + 1] = ~0;
}

static void describe_gpu(void)
{
	u32 prefetchable = PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH;

	describe_function(GPU_DEVICE_ID, PCI_CLASS_DISPLAY_3D << 8);
	config[PCI_SUBSYSTEM_VENDOR_ID / 4] = PCI_VENDOR_ID_NVIDIA | GPU_SUBSYSTEM_ID << 16;
	describe_bar(0, REGISTERS_SIZE, 0);
	describe_bar(1, FRAMEBUFFER_SIZE, prefetchable);
	describe_bar(3, INSTANCE_SIZE, prefetchable);
	config[PCI_INTERRUPT_LINE / 4] = 1 << 8;
	writable[PCI_INTERRUPT_LINE / 4] = 0xff;

	config[PCI_COMMAND / 4] |= PCI_STATUS_CAP_LIST << 16;
	config[PCI_CAPABILITY_LIST / 4] = CAP_PM;
	config[CAP_PM / 4] = PCI_CAP_ID_PM | CAP_EXP << 8 | 3 << 16;
	config[CAP_EXP / 4] = PCI_CAP_ID_EXP | 2 << 16;
	config[(CAP_EXP + PCI_EXP_LNKCAP) / 4] = PCI_EXP_LNKCAP_SLS_8_0GB | 0x100;
	config[(CAP_EXP + PCI_EXP_LNKCTL) / 4] = (PCI_EXP_LNKSTA_CLS_8_0GB | 0x100) << 16;
}

static int map_irq(const struct pci_dev *dev, u8 slot, u8 pin)
{
	return interrupt;
}

/* The driver wants an interrupt line; none ever comes on it. */
static int make_interrupt(void)
{
	interrupt = irq_alloc_desc(NUMA_NO_NODE);
	if (interrupt < 0)
		return interrupt;

	irq_set_chip_and_handler(interrupt, &dummy_irq_chip, handle_simple_irq);
	return 0;
}

/* Fills the registers from which the driver learns which GPU this is. */
static int fill_registers(struct pci_bus *bus)
{
	struct pci_dev *dev = pci_get_slot(bus, 0);
	void __iomem *registers = NULL;

	if (dev) {
		registers = ioremap(pci_resource_start(dev, 0), REGISTERS_SIZE);
		pci_dev_put(dev);
	}
	if (!registers)
		return -ENOMEM;

	memset_io(registers, 0, REGISTERS_SIZE);
	writel(GPU_BOOT_0, registers + GPU_REG_BOOT_0);
	writel(GPU_BOOT_42, registers + GPU_REG_BOOT_42);
	iounmap(registers);
	return 0;
}

static void remove_bus(void)
{
	pci_lock_rescan_remove();
	pci_stop_root_bus(bridge->bus);
	pci_remove_root_bus(bridge->bus);
	pci_unlock_rescan_remove();
}

static int make_gpu(void)
{
	int ret;

	window_resource.start = window;
	window_resource.end = window + WINDOW_SIZE - 1;
	ret = request_resource(&iomem_resource, &window_resource);
	if (ret) {
		pr_err("%pR is in use\n", &window_resource);
		return ret;
	}

	ret = make_interrupt();
	if (ret) {
		release_resource(&window_resource);
		return ret;
	}

	describe_gpu();
	pci_add_resource(&bridge->windows, &window_resource);
	bridge->map_irq = map_irq;
	return 0;
}

static void destroy_gpu(void)
{
	irq_free_desc(interrupt);
	release_resource(&window_resource);
}

static int __init test_pci_init(void)
{
	int ret;

	bridge = pci_alloc_host_bridge(0);
	if (!bridge)
		return -ENOMEM;

	if (window) {
		ret = make_gpu();
		if (ret)
			goto err_bridge;
	} else {
		describe_function(BRIDGE_DEVICE_ID, PCI_CLASS_BRIDGE_OTHER << 8);
	}

	pci_add_resource(&bridge->windows, &bus_resource);
	bridge->ops = &config_ops;
#ifdef CONFIG_X86
	bridge->sysdata = &sysdata;
#else
	bridge->domain_nr = TEST_DOMAIN;
#endif
	ret = pci_host_probe(bridge);
	if (ret)
		goto err_gpu;

	if (window) {
		ret = fill_registers(bridge->bus);
		if (ret)
			goto err_bus;
	}
	return 0;

err_bus:
	remove_bus();
err_gpu:
	if (window)
		destroy_gpu();
err_bridge:
	pci_free_host_bridge(bridge);
	return ret;
}

static void __exit test_pci_exit(void)
{
	remove_bus();
	if (window)
		destroy_gpu();
	pci_free_host_bridge(bridge);
}

module_init(test_pci_init);
module_exit(test_pci_exit);
MODULE_DESCRIPTION("A synthetic PCI function that lets nvidia.ko load without a GPU");
MODULE_LICENSE("GPL");
