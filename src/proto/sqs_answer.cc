#include "proto/sqs_answer.h"

#include <utility>

#include "base/json_writer.h"
#include "proto/sqs_rows.h"
#include "proto/xml.h"

namespace leasehold::proto::sqs {
namespace {

using base::Error;
using base::ErrorCode;
using Parts = std::vector<std::pair<Span, std::string>>;

std::string ResultName(Action action) { return std::string(ActionName(action)) + "Result"; }

std::string JsonFailures(const std::vector<EntryFailure>& failures) {
  std::string text;
  base::JsonWriter json(text);
  for (const EntryFailure& failure : failures) {
    json.BeginObject().Member("Id", failure.id).Member("Code", failure.code);
    json.Member("Message", failure.message).Member("SenderFault", failure.sender_fault);
    json.EndObject();
  }
  return text;
}

std::string XmlFailures(const std::vector<EntryFailure>& failures) {
  std::string text;
  for (const EntryFailure& failure : failures) {
    text += "<BatchResultErrorEntry><Id>" + XmlEscape(failure.id) + "</Id><Code>" +
            XmlEscape(failure.code) + "</Code><Message>" + XmlEscape(failure.message) +
            "</Message><SenderFault>" + (failure.sender_fault ? "true" : "false") +
            "</SenderFault></BatchResultErrorEntry>";
  }
  return text;
}

base::Result<std::string> MergeJson(std::string_view body, const std::string& ours) {
  if (body.empty()) return "{\"Successful\":[],\"Failed\":[" + ours + "]}";
  const auto members = JsonMembers(body, {0, body.size()});
  if (!members) return members.error();
  for (const JsonMember& member : *members) {
    if (member.key != "Failed") continue;
    if (member.value.Of(body) == "null") {
      return Splice(body, {{member.value, "[" + ours + "]"}});
    }
    const auto elements = JsonElements(body, member.value);
    if (!elements) return elements.error();
    const size_t end = member.value.end - 1;  // the closing bracket
    return Splice(body, {{{end, end}, (elements->empty() ? "" : ",") + ours}});
  }
  const size_t end = body.rfind('}');
  return Splice(body,
                {{{end, end}, (members->empty() ? "" : ",") + ("\"Failed\":[" + ours + "]")}});
}

base::Result<std::string> MergeXml(Action action, std::string_view body, const std::string& ours,
                                   std::string_view request_id) {
  const std::string name = ResultName(action);
  if (body.empty()) {
    return XmlResponse(action, "<" + name + ">" + ours + "</" + name + ">", request_id);
  }
  const auto results = FindXmlPlaces(body, name);
  if (!results) return results.error();
  if (results->size() != 1) {
    return Error{ErrorCode::kInvalid, "XML: " + std::to_string(results->size()) + " elements " +
                                          name + " where one would be right"};
  }
  const Span place = results->front();
  // "<a/>" has no content to put anything into.
  if (body.substr(0, place.end).ends_with("/>") && place.begin == place.end) {
    return Splice(body, {{{place.end - 2, place.end}, ">" + ours + "</" + name + ">"}});
  }
  return Splice(body, {{{place.end, place.end}, ours}});
}

base::Result<std::string> RewriteJsonUrls(
    std::string_view body, const std::function<std::string(std::string_view)>& change) {
  if (body.empty()) return std::string();
  const auto members = JsonMembers(body, {0, body.size()});
  if (!members) return members.error();
  Parts parts;
  const auto rewrite = [&](Span place) {
    const std::optional<std::string> url = JsonText(body, place);
    if (url) parts.emplace_back(place, base::JsonQuote(change(*url)));
  };
  for (const JsonMember& member : *members) {
    if (member.key == "QueueUrl") rewrite(member.value);
    // ListDeadLetterSourceQueues writes it small.
    if (member.key != "QueueUrls" && member.key != "queueUrls") continue;
    if (member.value.Of(body) == "null") continue;
    const auto elements = JsonElements(body, member.value);
    if (!elements) return elements.error();
    for (const Span element : *elements) rewrite(element);
  }
  return Splice(body, parts);
}

base::Result<std::string> RewriteXmlUrls(
    std::string_view body, const std::function<std::string(std::string_view)>& change) {
  const auto urls = FindXmlTexts(body, "QueueUrl");
  if (!urls) return urls.error();
  Parts parts;
  for (const XmlText& url : *urls) {
    if (!url.text.empty()) parts.emplace_back(url.place, XmlEscape(change(url.text)));
  }
  return Splice(body, parts);
}

}  // namespace

base::Result<std::vector<Received>> ParseReceived(Protocol protocol, std::string_view body) {
  // AWS JSON: SDKs read an empty body as an object without members, and some servers send one.
  if (protocol == Protocol::kJson && body.empty()) return std::vector<Received>();
  const std::vector<std::string_view> fields = {"MessageId", "ReceiptHandle"};
  const auto rows = ReadRows(protocol, body, {{"Messages"}, {"Message"}, {0}, fields, fields});
  if (!rows) return rows.error();
  std::vector<Received> messages;
  for (const Row& row : *rows) {
    if (row.fields[1].empty()) {
      return Error{ErrorCode::kInvalid, "a message without a ReceiptHandle"};
    }
    messages.push_back({row.fields[0], row.fields[1]});
  }
  return messages;
}

base::Result<BatchResult> ParseBatchResult(Protocol protocol, std::string_view body) {
  const std::vector<std::string_view> fields = {
      "Id",   "MessageId", "MD5OfMessageBody", "MD5OfMessageAttributes", "SequenceNumber",
      "Code", "Message",   "SenderFault"};
  const auto rows = ReadRows(protocol, body,
                             {{"Successful", "Failed"},
                              {"SendMessageBatchResultEntry", "DeleteMessageBatchResultEntry",
                               "ChangeMessageVisibilityBatchResultEntry", "BatchResultErrorEntry"},
                              {0, 0, 0, 1},
                              fields,
                              fields});
  if (!rows) return rows.error();
  BatchResult result;
  for (const Row& row : *rows) {
    const std::vector<std::string>& f = row.fields;
    if (row.list == 0) {
      result.successful.push_back({f[0], f[1], f[2], f[3], f[4]});
    } else {
      result.failed.push_back({f[0], f[5], f[6], f[7] == "true"});
    }
  }
  return result;
}

base::Result<std::string> MergeBatchResult(Protocol protocol, Action action, std::string_view body,
                                           const std::vector<EntryFailure>& ours,
                                           std::string_view request_id) {
  if (ours.empty() && !body.empty()) return std::string(body);
  if (protocol == Protocol::kJson) return MergeJson(body, JsonFailures(ours));
  return MergeXml(action, body, XmlFailures(ours), request_id);
}

base::Result<std::string> RewriteQueueUrls(
    Protocol protocol, Action action, std::string_view body,
    const std::function<std::string(std::string_view)>& change) {
  switch (action) {
    case Action::kGetQueueUrl:
    case Action::kCreateQueue:
    case Action::kListQueues:
    case Action::kListDeadLetterSourceQueues: break;
    default: return std::string(body);
  }
  return protocol == Protocol::kJson ? RewriteJsonUrls(body, change) : RewriteXmlUrls(body, change);
}

Answer AnswerWith(Protocol protocol, std::string body, std::string_view request_id) {
  Answer answer;
  answer.content_type = protocol == Protocol::kJson ? "application/x-amz-json-1.0" : "text/xml";
  answer.headers.emplace_back("x-amzn-RequestId", request_id);
  answer.body = std::move(body);
  return answer;
}

Answer EmptyReceive(Protocol protocol, std::string_view request_id) {
  if (protocol == Protocol::kJson) return AnswerWith(protocol, "{}", request_id);
  return AnswerWith(protocol,
                    XmlResponse(Action::kReceiveMessage,
                                "<ReceiveMessageResult></ReceiveMessageResult>", request_id),
                    request_id);
}

Answer EmptyAnswer(Protocol protocol, Action action, std::string_view request_id) {
  // AWS JSON: an operation without an output has an empty body.
  if (protocol == Protocol::kJson) return AnswerWith(protocol, "", request_id);
  return AnswerWith(protocol, XmlResponse(action, "", request_id), request_id);
}

}  // namespace leasehold::proto::sqs
