#include "lease/trace.h"

#include "base/text.h"

namespace leasehold::lease {
namespace {

template <typename... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <typename... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

std::string Number(uint64_t n) { return std::to_string(n); }

std::string ReadText(const ReadAnswer& read) {
  std::string text = "read #" + Number(read.op) + " -> ";
  switch (read.outcome) {
    case ReadAnswer::Outcome::kAbsent: return text + "absent";
    case ReadAnswer::Outcome::kRecord:
      return text + "[" + RecordText(*read.record) + "]" + (read.holder_dead ? " holder dead" : "");
    case ReadAnswer::Outcome::kAmbiguous: return text + "ambiguous";
    case ReadAnswer::Outcome::kRefused: return text + "refused";
  }
  return text;
}

std::string CasText(const CasAnswer& cas) {
  std::string text = "write #" + Number(cas.op) + " -> ";
  switch (cas.outcome) {
    case CasAnswer::Outcome::kApplied: return text + "applied";
    case CasAnswer::Outcome::kConflict:
      if (cas.record) return text + "conflict with [" + RecordText(*cas.record) + "]";
      return text + (cas.absent ? "conflict, absent" : "conflict");
    case CasAnswer::Outcome::kAmbiguous: return text + "ambiguous";
    case CasAnswer::Outcome::kRefused: return text + "refused";
  }
  return text;
}

std::string_view PurposeName(CasEffect::Purpose purpose) {
  switch (purpose) {
    case CasEffect::Purpose::kAcquire: return "acquire";
    case CasEffect::Purpose::kRenew: return "renew";
    case CasEffect::Purpose::kRelease: return "release";
  }
  return "renew";
}

std::string NoticeText(const NoticeEffect& n) {
  std::string text = "tell " + std::string(NoticeName(n.notice)) + " token=" + Number(n.token);
  if (n.reason != Reason::kNone) text += " reason=" + std::string(ReasonName(n.reason));
  if (!n.holder_process_id.empty())
    text += " holder=" + n.holder_node_id + "/" + n.holder_process_id;
  if (n.notice == Notice::kDraining) text += " grace=" + base::FormatDuration(n.grace);
  return text;
}

std::string DoneText(const StepDownDone& done) {
  return "answer step-down #" + Number(done.request) + " " +
         std::string(OutcomeName(done.outcome)) + " released=" + Number(done.released_token) +
         " now=" + done.node_id + "/" + done.process_id + " token=" + Number(done.token);
}

}  // namespace

std::string RecordText(const Record& record) {
  return record.node_id + "/" + record.process_id + " token=" + Number(record.token) +
         " beat=" + Number(record.beat) + " " + std::string(RecordStateName(record.state)) +
         " ttl=" + std::to_string(record.ttl_ms);
}

std::string EventText(const Event& event) {
  return std::visit(
      Overloaded{
          [](const Tick&) -> std::string { return "tick"; },
          [](const ReadAnswer& e) { return ReadText(e); },
          [](const CasAnswer& e) { return CasText(e); },
          [](const Hint& e) -> std::string {
            return e.urgent ? "hint: changed hands" : "hint: beat";
          },
          [](const PushState& e) -> std::string { return e.working ? "push up" : "push down"; },
          [](const AppState& e) -> std::string { return e.ready ? "app ready" : "app unready"; },
          [](const AppUnreadyTooLong&) -> std::string { return "app unready too long"; },
          [](const StepDownRequest& e) {
            return "step-down #" + Number(e.request) + " of " + e.expected.node_id +
                   " token=" + Number(e.expected.token) + (e.take_back ? "" : " no take-back");
          },
          [](const Drained& e) { return "drained token=" + Number(e.token); },
          [](const StartFailed& e) { return "start failed token=" + Number(e.token); },
          [](const LostTime&) -> std::string { return "lost time"; },
          [](const Shutdown& e) -> std::string {
            return e.watch_on ? "shutdown watch_on" : "shutdown";
          }},
      event);
}

std::string EffectText(const Effect& effect) {
  return std::visit(
      Overloaded{[](const ReadEffect& e) {
                   return "read #" + Number(e.op) + " within " + base::FormatDuration(e.timeout);
                 },
                 [](const CasEffect& e) {
                   return std::string(PurposeName(e.purpose)) + " #" + Number(e.op) + " on " +
                          (e.expected ? *e.expected : "absent") + " [" + RecordText(e.record) +
                          "] within " + base::FormatDuration(e.timeout);
                 },
                 [](const ValveEffect& e) {
                   return "valve " + std::string(ValveName(e.valve)) + (e.lost ? " lost" : "") +
                          (e.reason == Reason::kNone
                               ? ""
                               : " reason=" + std::string(ReasonName(e.reason)));
                 },
                 [](const NoticeEffect& e) { return NoticeText(e); },
                 [](const StepDownDone& e) { return DoneText(e); },
                 [](const StoppedEffect& e) -> std::string {
                   return e.ok ? "stopped" : "stopped: refused to start";
                 }},
      effect);
}

}  // namespace leasehold::lease
