// The lists in an answer (messages, results of a batch) as rows of a few short fields, from JSON or
// XML alike. Private to proto/sqs: gates see sqs_answer.h. Nothing but the fields asked for is
// copied.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "proto/sqs_answer.h"

namespace leasehold::proto::sqs {

struct Row {
  size_t list = 0;                  // which of the lists asked for
  std::vector<std::string> fields;  // in the order asked for; empty: absent
};
struct RowQuery {
  std::vector<std::string_view> json_lists;    // members of the answer that are arrays
  std::vector<std::string_view> xml_elements;  // each is one row
  std::vector<size_t> xml_list;  // of each of xml_elements: which of json_lists it belongs to
  std::vector<std::string_view> json_fields;
  std::vector<std::string_view> xml_fields;  // as many
};
base::Result<std::vector<Row>> ReadRows(Protocol protocol, std::string_view body,
                                        const RowQuery& query);

// Where the texts of each element of that name stand in an XML answer, decoded and in bytes.
struct XmlText {
  Span place;
  std::string text;
};
base::Result<std::vector<XmlText>> FindXmlTexts(std::string_view body, std::string_view name);

// Where the contents of each element of that name stand.
base::Result<std::vector<Span>> FindXmlPlaces(std::string_view body, std::string_view name);

// "<DeleteMessageResponse xmlns=...>" + `inner` + "<ResponseMetadata>..." : a whole answer.
std::string XmlResponse(Action action, std::string_view inner, std::string_view request_id);

}  // namespace leasehold::proto::sqs
