#include "proto/sqs_rows.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "proto/json.h"
#include "proto/xml.h"

namespace leasehold::proto::sqs {
namespace {

size_t IndexOf(const std::vector<std::string_view>& names, std::string_view name) {
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

class RowVisitor final : public XmlVisitor {
 public:
  explicit RowVisitor(const RowQuery& query) : query_(query) {}

  void OnStart(std::string_view name, size_t /*at*/) override {
    ++depth_;
    if (row_depth_ == 0) {
      const size_t element = IndexOf(query_.xml_elements, name);
      if (element == query_.xml_elements.size()) return;
      row_depth_ = depth_;
      rows_.push_back(
          {query_.xml_list[element], std::vector<std::string>(query_.xml_fields.size())});
      return;
    }
    if (depth_ != row_depth_ + 1) return;
    const size_t field = IndexOf(query_.xml_fields, name);
    if (field < query_.xml_fields.size()) text_ = &rows_.back().fields[field];
  }
  void OnText(std::string_view piece) override {
    if (text_ != nullptr && depth_ == row_depth_ + 1) text_->append(piece);
  }
  void OnEnd(std::string_view /*name*/, size_t /*at*/) override {
    if (depth_ == row_depth_ + 1) text_ = nullptr;
    if (depth_ == row_depth_) row_depth_ = 0;
    --depth_;
  }

  std::vector<Row> Take() { return std::move(rows_); }

 private:
  const RowQuery& query_;
  std::vector<Row> rows_;
  size_t depth_ = 0;
  size_t row_depth_ = 0;  // 0: in no row
  std::string* text_ = nullptr;
};

// A text, or what stands there ("true", "17").
std::string FieldText(std::string_view body, const JsonMember& member) {
  if (body[member.value.begin] != '"') return std::string(member.value.Of(body));
  return JsonText(body, member.value).value_or("");
}

base::Result<std::vector<Row>> ReadJsonRows(std::string_view body, const RowQuery& query) {
  const auto answer = JsonMembers(body, {0, body.size()});
  if (!answer) return answer.error();
  std::vector<Row> rows;
  for (size_t list = 0; list < query.json_lists.size(); ++list) {
    const JsonMember* member = FindMember(body, *answer, query.json_lists[list]);
    if (member == nullptr) continue;
    const auto elements = JsonElements(body, member->value);
    if (!elements) return elements.error();
    for (const Span element : *elements) {
      const auto members = JsonMembers(body, element);
      if (!members) return members.error();
      Row& row = rows.emplace_back();
      row.list = list;
      for (const std::string_view name : query.json_fields) {
        const JsonMember* field = FindMember(body, *members, name);
        row.fields.push_back(field == nullptr ? std::string() : FieldText(body, *field));
      }
    }
  }
  return rows;
}

class TextVisitor final : public XmlVisitor {
 public:
  explicit TextVisitor(std::string_view name) : name_(name) {}

  void OnStart(std::string_view name, size_t at) override {
    open_ = name == name_;
    if (open_) texts_.push_back({{at, at}, ""});
  }
  void OnText(std::string_view piece) override {
    if (open_) texts_.back().text.append(piece);
  }
  void OnEnd(std::string_view name, size_t at) override {
    if (open_ && name == name_) texts_.back().place.end = at;
    open_ = false;
  }

  std::vector<XmlText> Take() { return std::move(texts_); }

 private:
  const std::string_view name_;
  std::vector<XmlText> texts_;
  bool open_ = false;
};

class PlaceVisitor final : public XmlVisitor {
 public:
  explicit PlaceVisitor(std::string_view name) : name_(name) {}

  void OnStart(std::string_view name, size_t at) override {
    if (name == name_) places_.push_back({at, at});
  }
  void OnText(std::string_view /*piece*/) override {}
  void OnEnd(std::string_view name, size_t at) override {
    if (name == name_) places_.back().end = at;
  }

  std::vector<Span> Take() { return std::move(places_); }

 private:
  const std::string_view name_;
  std::vector<Span> places_;
};

}  // namespace

base::Result<std::vector<Row>> ReadRows(Protocol protocol, std::string_view body,
                                        const RowQuery& query) {
  CHECK(query.json_fields.size() == query.xml_fields.size(), "one name for each field in both");
  if (protocol == Protocol::kJson) return ReadJsonRows(body, query);
  RowVisitor visitor(query);
  const base::Status read = ReadXml(body, visitor);
  if (!read) return read.error();
  return visitor.Take();
}

base::Result<std::vector<XmlText>> FindXmlTexts(std::string_view body, std::string_view name) {
  TextVisitor visitor(name);
  const base::Status read = ReadXml(body, visitor);
  if (!read) return read.error();
  return visitor.Take();
}

base::Result<std::vector<Span>> FindXmlPlaces(std::string_view body, std::string_view name) {
  PlaceVisitor visitor(name);
  const base::Status read = ReadXml(body, visitor);
  if (!read) return read.error();
  return visitor.Take();
}

std::string XmlResponse(Action action, std::string_view inner, std::string_view request_id) {
  const std::string name = std::string(ActionName(action)) + "Response";
  return "<?xml version=\"1.0\"?>\n<" + name +
         " xmlns=\"http://queue.amazonaws.com/doc/2012-11-05/\">" + std::string(inner) +
         "<ResponseMetadata><RequestId>" + XmlEscape(request_id) +
         "</RequestId></ResponseMetadata></" + name + ">";
}

}  // namespace leasehold::proto::sqs
