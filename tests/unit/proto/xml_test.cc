// XML: what is told of a document, where it stands, and all that is refused.
#include "proto/xml.h"

#include <gtest/gtest.h>

#include <vector>

namespace leasehold::proto {
namespace {

using base::ErrorCode;

class Trace final : public XmlVisitor {
 public:
  explicit Trace(std::string_view text) : text_(text) {}
  void OnStart(std::string_view name, size_t at) override {
    story += "<" + std::string(name) + ">";
    begins_.push_back(at);
  }
  void OnText(std::string_view piece) override { story += piece; }
  void OnEnd(std::string_view name, size_t at) override {
    story += "</" + std::string(name) + ">";
    inner = text_.substr(begins_.back(), at - begins_.back());
    begins_.pop_back();
  }

  std::string story;
  std::string_view inner;  // of the element that ended last

 private:
  std::string_view text_;
  std::vector<size_t> begins_;
};

class XmlTest : public ::testing::Test {
 protected:
  base::Status Read(std::string_view text, const XmlLimits& limits = {}) {
    trace_ = std::make_unique<Trace>(text);
    return ReadXml(text, *trace_, limits);
  }
  ErrorCode CodeOf(std::string_view text, const XmlLimits& limits = {}) {
    const base::Status status = Read(text, limits);
    message_ = status.ok() ? "" : status.error().message;
    return status.ok() ? ErrorCode::kInternal : status.error().code;
  }

  std::unique_ptr<Trace> trace_;
  std::string message_;
};

TEST_F(XmlTest, ElementsAndTextsAreToldInOrderWithoutPrefixes) {
  ASSERT_TRUE(
      Read("<?xml version=\"1.0\"?>\n<a xmlns:p=\"u\" k=\"v\"><p:b>x &amp; &#233;</p:b><c/></a>"));
  EXPECT_EQ(trace_->story, "<a><b>x & \xc3\xa9</b><c></c></a>");
}

TEST_F(XmlTest, OffsetsAreThoseOfTheContent) {
  const std::string_view text = "<r><u>a&amp;b</u></r>";
  ASSERT_TRUE(Read(text));
  EXPECT_EQ(trace_->inner, "<u>a&amp;b</u>");
  ASSERT_TRUE(Read("<u  k='1' >x&lt;</u >"));
  EXPECT_EQ(trace_->inner, "x&lt;");
  ASSERT_TRUE(Read("<u/>"));
  EXPECT_EQ(trace_->inner, "");
}

TEST_F(XmlTest, SectionsOfCharactersAndCommentsAreRead) {
  ASSERT_TRUE(Read("<a><![CDATA[<b>]]><!-- no --></a>"));
  EXPECT_EQ(trace_->story, "<a><b></a>");
}

TEST_F(XmlTest, ADocumentTypeIsRefusedWithAllThatComesWithIt) {
  EXPECT_EQ(CodeOf("<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>"), ErrorCode::kInvalid);
  EXPECT_NE(message_.find("document type"), std::string::npos) << message_;
  EXPECT_EQ(trace_->story, "");
  EXPECT_EQ(CodeOf("<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a/>"), ErrorCode::kInvalid);
  EXPECT_EQ(CodeOf("<a>&x;</a>"), ErrorCode::kInvalid);
}

TEST_F(XmlTest, BytesDepthAndElementsAreLimited) {
  XmlLimits limits;
  limits.bytes_max = 10;
  EXPECT_TRUE(Read("<a>123</a>", limits));
  EXPECT_EQ(CodeOf("<a>1234</a>", limits), ErrorCode::kLimit);
  limits = {};
  limits.depth_max = 2;
  EXPECT_TRUE(Read("<a><b/><b/></a>", limits));
  EXPECT_EQ(CodeOf("<a><b><c/></b></a>", limits), ErrorCode::kLimit);
  limits = {};
  limits.elements_max = 2;
  EXPECT_TRUE(Read("<a><b/></a>", limits));
  EXPECT_EQ(CodeOf("<a><b/><c>text</c></a>", limits), ErrorCode::kLimit);
  EXPECT_EQ(trace_->story, "<a><b></b>");
}

TEST_F(XmlTest, OnlyUtf8IsTakenWhateverTheDeclarationSays) {
  EXPECT_EQ(CodeOf("<a>\xff</a>"), ErrorCode::kInvalid);
  ASSERT_TRUE(Read("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a>\xc3\xa9</a>"));
  EXPECT_EQ(trace_->story, "<a>\xc3\xa9</a>");
  EXPECT_EQ(CodeOf(std::string_view("<a>\0</a>", 8)), ErrorCode::kInvalid);
}

TEST_F(XmlTest, EveryTruncationIsAnErrorWithItsPlace) {
  const std::string_view whole = "<?xml version=\"1.0\"?><a k=\"v\"><b>x&amp;y</b><c/></a>";
  ASSERT_TRUE(Read(whole));
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_EQ(CodeOf(whole.substr(0, length)), ErrorCode::kInvalid) << length;
    EXPECT_TRUE(message_.starts_with("XML line 1, column ")) << message_;
  }
  EXPECT_EQ(CodeOf("<a/><b/>"), ErrorCode::kInvalid);
}

TEST_F(XmlTest, WhatIsEscapedIsReadBack) {
  const std::string text = "<&>\"' \t\n\r \xe2\x82\xac \xf0\x9f\x98\x80";
  const std::string document = "<a>" + XmlEscape(text) + "</a>";
  ASSERT_TRUE(Read(document));
  EXPECT_EQ(trace_->story, "<a>" + text + "</a>");
}

TEST_F(XmlTest, WhatXmlCannotCarryIsReplaced) {
  EXPECT_EQ(XmlEscape(std::string_view("a\0b\x01\xff\xef\xbf\xbe\xef\xbf\xbf", 11)),
            "a\xef\xbf\xbd"
            "b\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

}  // namespace
}  // namespace leasehold::proto
