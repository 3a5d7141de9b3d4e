-- wrk's script for SQS calls in AWS JSON 1.0, as an SDK without a signature makes them (the gate
-- signs anew whatever arrives).
--
--   wrk ... -s sqs_load.lua http://HOST:PORT -- send      SendMessage of 1 KiB
--   wrk ... -s sqs_load.lua http://HOST:PORT -- consume   ReceiveMessage of one message, and the
--                                                         DeleteMessage of each that came

local BODY = string.rep("x", 1024)
local handles = {}  -- received, to be deleted
local left = 0
local send, receive, delete_head, headers

local function headers_of(action)
  return {
    ["Content-Type"] = "application/x-amz-json-1.0",
    ["X-Amz-Target"] = "AmazonSQS." .. action,
  }
end

function init(args)
  local queue = string.format('{"QueueUrl":"http://%s:%s/000000000000/bench"', wrk.host, wrk.port)
  send = wrk.format("POST", "/", headers_of("SendMessage"),
                    queue .. ',"MessageBody":"' .. BODY .. '"}')
  receive = wrk.format("POST", "/", headers_of("ReceiveMessage"),
                       queue .. ',"MaxNumberOfMessages":1,"WaitTimeSeconds":20}')
  delete_head = queue .. ',"ReceiptHandle":"'
  headers = headers_of("DeleteMessage")
  if args[1] == "send" then
    response = nil  -- so that wrk does not carry answers over to here
  elseif args[1] ~= "consume" then
    error("what is to be done: send or consume?")
  end
  consuming = args[1] == "consume"
end

function request()
  if not consuming then return send end
  if left == 0 then return receive end
  local handle = handles[left]
  left = left - 1
  return wrk.format("POST", "/", headers, delete_head .. handle .. '"}')
end

function response(status, _, body)
  if status ~= 200 then return end
  for handle in string.gmatch(body, '"ReceiptHandle":"([^"]+)"') do
    left = left + 1
    handles[left] = handle
  end
end
