// SqsGate: the machine behind MakeSqsGate (sqs_gate.h): connections of the application's SDK on one
// side, aws::Service on the other, in between the lease. sqs_gate.cc: valve and giving back;
// sqs_forward.cc: requests that are answered by one call; sqs_receive.cc: receives, which may wait;
// sqs_clients.cc: connections; sqs_report.cc: words, metrics, log.
//
// What passes, by the state of the lease (DESIGN 4):
//   holding   all, after a fresh look at the permit: before a request goes on and before its answer
//             is handed on. Received messages are in flight until they are deleted, made visible,
//             or their visibility time-out is over.
//   confirming (after lost time) what is with SQS goes on; changes are held; receives wait, and
//             messages that arrive are kept until it is known whether they may be handed on.
//   draining  no receive goes on, open ones end empty toward the application at once; what still
//             arrives for them is given back. Deletes, visibility changes and sends pass. The drain
//             is over when nothing is in flight; GiveBackLead before its end what still is goes
//             back, once, and its handles are former ones from then on.
//   closed    receives answer like an empty queue, reads pass, changes are refused with the error
//             that SDKs repeat; sends as standby_send says. After a loss nothing is given back but
//             what the application never saw; handles of an ended term are former: refused until
//             their visibility time-out, also when this process holds again.
//
// Invariants: a ReceiveMessage that is with SQS is never cut while the process lives; at most
// max_polls receives wait or are with SQS; messages in flight and asked for together stay within
// max_in_flight (one receive alone may ask for its 10); what goes to SQS carries nothing of the
// client's signature.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "aws/service.h"
#include "aws/sqs_client.h"
#include "base/random.h"
#include "gate/gate_frame.h"
#include "gate/sqs_answers.h"
#include "gate/sqs_connection.h"
#include "gate/sqs_exchange.h"
#include "gate/sqs_give_back.h"
#include "gate/sqs_in_flight.h"
#include "gate/sqs_queues.h"
#include "loop/timer.h"

namespace leasehold::gate {

class SqsGate final : public GateFrame, public SqsServer {
 public:
  SqsGate(const Options& options, Host host, std::shared_ptr<aws::CredentialsProvider> credentials,
          aws::Endpoint endpoint);
  ~SqsGate() override;

  base::Status Start() override { return Listen(); }

 private:
  // ---- GateFrame ----
  base::Status OnValve(const ValveChange& change) override;
  void OnAccepted(int fd, std::string peer) override;
  void Serve(HoldEntry& entry, Ticket ticket) override;
  void Refuse(HoldEntry& entry, Refusal reason) override;
  void Forward(HoldEntry&, bool) override {}
  void OnPeerAccepted(int, std::string) override {}
  void OnNewPeer() override {}
  void OnLeave() override;
  uint64_t forwarding() const override { return 0; }
  void CutTunnels() override {}
  bool has_tunnels() const override { return false; }
  std::string upstream_name() const override { return service_.endpoint().ToString(); }
  // While the process goes away, also what is still with SQS.
  uint64_t connections() const override;
  uint64_t bytes_to_upstream() const override { return bytes_in_; }
  uint64_t bytes_to_downstream() const override { return bytes_out_; }

  // ---- SqsServer ----
  void OnRequest(SqsConnection& connection) override;
  void OnBadRequest(SqsConnection& connection, int status, std::string_view message) override;
  bool LeftBy(SqsConnection& connection) override;
  bool MayFlush() override { return MayPass(); }
  bool TakeRoom(size_t bytes) override;
  void GiveRoom(size_t bytes) override { body_bytes_ -= bytes; }
  void OnClosing(SqsConnection& connection, bool answered) override;
  void CountBytes(size_t from_client, size_t to_client) override;

  // ---- requests (sqs_forward.cc) ----
  bool RefuseLoop(SqsConnection& connection);
  bool FindQueue(SqsExchange& exchange);
  void Begin(SqsExchange& exchange);
  bool SendMayPassUngated(const SqsExchange& exchange) const;
  void Admitted(SqsExchange& exchange, Ticket ticket);
  bool PickEntries(SqsExchange& exchange, proto::sqs::Rewrite& rewrite);
  void Call(SqsExchange& exchange, const proto::sqs::Rewrite& rewrite, base::Duration timeout);
  void OnAnswer(SqsExchange& exchange, base::Result<aws::Response> result);
  void SettleEntries(SqsExchange& exchange, const base::Result<aws::Response>& result);
  void SettleEntry(const SqsExchange& exchange, size_t i, bool ok, std::string_view code);
  void HandOn(SqsExchange& exchange, base::Result<aws::Response> result);
  void AnswerAnswered(SqsExchange& exchange, aws::Response&& response);
  void AnswerFault(SqsExchange& exchange, const proto::sqs::Fault& fault, std::string_view result);
  void AnswerRefusal(SqsExchange& exchange, Refusal reason);
  void Say(SqsExchange& exchange, const proto::sqs::Answer& answer, std::string_view result);
  void Over(SqsExchange& exchange);
  void CutExchanges();

  // ---- receives (sqs_receive.cc) ----
  void BeginReceive(SqsExchange& poll);
  bool MayReceive();
  bool Confirming() const;
  bool HasRoom(size_t messages) const;
  void PumpPolls();
  bool Ask(SqsExchange& poll);  // false: there is no room for anybody
  void OnReceiveAnswer(SqsExchange& poll, base::Result<aws::Response> result);
  void OnEmpty(SqsExchange& poll, aws::Response&& response);
  void OnReceived(SqsExchange& poll);
  bool Deliver(SqsExchange& poll);
  void GiveBackUnseen(const SqsExchange& poll, std::string_view reason);
  void AnswerEmpty(SqsExchange& poll);
  void EndOpenPolls(std::string_view reason);
  void SettleParked();
  void Wait(SqsExchange& poll);
  void EndDuePolls();
  void ArmPollTimer();
  int WaitCap() const;

  // ---- the rest (sqs_gate.cc, sqs_clients.cc, sqs_report.cc) ----
  void GiveBackSeen();
  void OnGivenBack(const SqsGiveBack::Batch& batch, const SqsGiveBack::Result& result);
  void NoteGivenBack(const SqsGiveBack::Batch& batch, const SqsGiveBack::Result& result);
  void TellGivenBack();
  void LookAtDeadlines();
  void ArmExpiry();
  SqsExchange& Add(SqsConnection& connection);
  SqsSpeaker Speaker(const SqsExchange& exchange) const;
  std::string RequestId();
  void CountRequest(const SqsExchange& exchange, std::string_view result);
  void CountRefused(std::string_view reason);
  void NoteTrouble(std::string_view event, std::string_view message, std::string_view error);
  observe::Labels Labels() const;
  void CollectSqs(observe::Samples& samples) const;
  void Sweep();
  void Bury();

  aws::Service service_;
  aws::SqsClient client_;
  base::Random random_;
  SqsInFlight in_flight_;
  SqsQueues queues_;
  SqsGiveBack give_back_;

  std::vector<std::unique_ptr<SqsConnection>> connections_;
  std::vector<std::unique_ptr<SqsExchange>> exchanges_;
  std::vector<std::unique_ptr<SqsConnection>> buried_connections_;
  std::vector<std::unique_ptr<SqsExchange>> buried_exchanges_;
  bool burying_ = false;
  std::list<SqsExchange*> waiting_;  // kWaiting, the oldest first
  size_t polls_ = 0;                 // receives that wait, are with SQS, or are parked
  size_t reserved_ = 0;              // messages that receives under way may bring
  bool pumping_ = false;
  SqsGiveBack::Result given_;  // since the last line of it in the log
  std::string given_queue_;
  std::string given_reason_;
  bool giving_back_ = false;  // the drain's end is near
  size_t body_bytes_ = 0;
  uint64_t bytes_in_ = 0;
  uint64_t bytes_out_ = 0;

  loop::Timer sweep_timer_;
  loop::Timer poll_timer_;
  loop::Timer expiry_timer_;
  loop::Timer give_back_timer_;
  loop::Timer given_timer_;
  const base::Duration sweep_interval_;
  observe::RateLimit trouble_limit_;
  observe::RateLimit full_limit_;
  observe::Histogram& latency_;
  observe::Histogram& receive_latency_;
  std::shared_ptr<SqsGate*> self_;  // for posted work
};

}  // namespace leasehold::gate
