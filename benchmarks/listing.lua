-- ListObjectsV2 over objects that are known beforehand, sorted by the bytes of their keys. See canned.py.

local listing = {}
local keys, elements = {}, {}
local PAGE = 1000 -- objects of one answer: the most that S3 gives

-- Read the file that canned.py writes: key, tab, element.
function listing.load(path)
  for line in io.lines(path) do
    local key, element = line:match("^([^\t]*)\t(.*)$")
    keys[#keys + 1], elements[#elements + 1] = key, element
  end
end

-- The number of the first key that is not before `text`.
local function first_from(text)
  local low, high = 1, #keys + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    if keys[middle] < text then low = middle + 1 else high = middle end
  end
  return low
end

-- The first text that is behind everything which begins with `text`.
local function behind(text)
  return text:sub(1, -2) .. string.char(text:byte(-1) + 1)
end

-- Where a page begins that follows `mark`: a key, or a common prefix, which stands for all keys below it.
local function following(mark, delimiter)
  if mark == "" then return 1 end
  if delimiter ~= "" and mark:sub(-#delimiter) == delimiter then return first_from(behind(mark)) end
  return first_from(mark .. "\0")
end

local function has(at, prefix)
  return at <= #keys and keys[at]:sub(1, #prefix) == prefix
end

local function joined(tag, texts)
  for number, text in ipairs(texts) do texts[number] = "<" .. tag .. ">" .. text .. "</" .. tag .. ">" end
  return table.concat(texts)
end

-- The answer to a request with these arguments.
function listing.page(arguments)
  local prefix, delimiter = arguments.prefix or "", arguments.delimiter or ""
  local most = math.min(tonumber(arguments["max-keys"]) or PAGE, PAGE)
  local mark = arguments["continuation-token"] or arguments["start-after"] or arguments.marker or ""
  local at = math.max(first_from(prefix), following(mark, delimiter))
  local found, prefixes, last = {}, {}, ""
  while has(at, prefix) and #found + #prefixes < most do
    local cut = delimiter ~= "" and keys[at]:find(delimiter, #prefix + 1, true)
    if cut then
      last = keys[at]:sub(1, cut + #delimiter - 1)
      prefixes[#prefixes + 1] = "<Prefix>" .. last .. "</Prefix>"
      at = first_from(behind(last))
    else
      last, found[#found + 1] = keys[at], elements[at]
      at = at + 1
    end
  end
  local count, more = #found + #prefixes, has(at, prefix)
  local next_mark = more and (joined("NextContinuationToken", { last }) .. joined("NextMarker", { last })) or ""
  return '<?xml version="1.0" encoding="UTF-8"?>\n'
    .. '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
    .. joined("Name", { "bucket" }) .. joined("Prefix", { prefix }) .. joined("KeyCount", { count })
    .. joined("MaxKeys", { most }) .. joined("IsTruncated", { tostring(more) }) .. next_mark
    .. table.concat(found) .. joined("CommonPrefixes", prefixes) .. "</ListBucketResult>"
end

-- Answer the present request.
function listing.answer()
  local body = listing.page(ngx.req.get_uri_args())
  ngx.header.content_type = "application/xml"
  ngx.header.content_length = #body
  ngx.header["x-amz-bucket-region"] = "us-east-1"
  ngx.print(body)
end

return listing
