// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/module/attributes.h"

#include <gtest/gtest.h>

#include "lib/error.h"

namespace umacct {
namespace {

TEST(Attributes, AreReadAsTheyWereWritten) {
    AttributeWriter nest;
    AttributeWriter writer;

    nest.put_u32(1, 99);
    writer.put_u32(1, 7);
    writer.put_u64(2, 1ULL << 40);
    writer.put_string(3, "abc");
    writer.put_flag(4);
    writer.put_nest(5, nest.payload());

    const Payload payload = writer.payload();
    const AttributeReader reader(payload, 6);
    EXPECT_EQ(reader.u32(1), 7U);
    EXPECT_EQ(reader.u64(2), 1ULL << 40);
    EXPECT_EQ(reader.string(3), "abc");
    EXPECT_TRUE(reader.has(4));
    EXPECT_TRUE(reader.has(5));
    EXPECT_FALSE(reader.has(6));
    EXPECT_EQ(reader.u64(6), 0U);
    for_each_attribute(payload, [](std::uint16_t type, std::span<const std::byte> value) {
        if (type == 5) {
            EXPECT_EQ(AttributeReader(value, 1).u32(1), 99U);
        }
    });
}

TEST(Attributes, OfANewerModuleAreIgnored) {
    AttributeWriter writer;

    writer.put_u32(200, 1);
    writer.put_u32(1, 5);
    EXPECT_EQ(AttributeReader(writer.payload(), 3).u32(1), 5U);
}

TEST(Attributes, CutShortAreAnError) {
    AttributeWriter writer;

    writer.put_u64(1, 5);
    for (std::size_t size = 1; size < writer.payload().size(); ++size) {
        const std::span<const std::byte> part(writer.payload().data(), size);

        EXPECT_THROW(AttributeReader(part, 1), Error) << size;
    }
}

TEST(Attributes, ANumberThatIsTooShortIsAnError) {
    AttributeWriter writer;

    writer.put_u32(1, 5);
    EXPECT_THROW(AttributeReader(writer.payload(), 1).u64(1), Error);
}

TEST(Attributes, ALengthThatLeadsNowhereIsAnError) {
    const Payload empty(8);

    EXPECT_THROW(AttributeReader(empty, 1), Error);
}

} // namespace
} // namespace umacct
