// `--help` and docs/configuration.md describe settings in these words.

export const ABOUT = {
  MINTMARK_STORE: "Folder of the store, which `mintmark init` creates; the server never does.",
  MINTMARK_JOURNAL: "The journal of a cluster: PostgreSQL with a synchronous standby.",
  MINTMARK_JOURNAL_KEYS:
    "Keys of 32 random bytes in hex that encrypt the journal: the first encrypts, all decrypt.",
  MINTMARK_JOURNAL_COPIES: "1 accepts a journal without a synchronous standby.",
  MINTMARK_JOURNAL_MIB:
    "MiB after which the leader stores a snapshot in the journal and deletes old entries.",
  MINTMARK_SERVER_NAME:
    "This server's name in its cluster; default the machine's name and the process's id.",
  MINTMARK_SERVER_URL:
    "This server's address for the others of its cluster; default its own host and port.",
  MINTMARK_LEASE_SECONDS: "After this silence, another server replaces the leader.",
  MINTMARK_ENVIRONMENT:
    "`sandbox` or `live`. Each refuses keys, tokens and stores of the other; live refuses test chains.",
  MINTMARK_CHAIN_ID: "Id of the settlement chain.",
  MINTMARK_CONTRACT: "Address of the settlement contract, `StateCommitment`.",
  MINTMARK_RPC_URL: "A node of the settlement chain. Live needs it.",
  MINTMARK_OPERATOR_KEY: "The operator's private key.",
  MINTMARK_OPERATOR_KEYSTORE: "In place of the key: an encrypted file of it; docs/guides/keys.md.",
  MINTMARK_OPERATOR_PASSWORD_FILE:
    "File of the keystore's password; `-`, the default, is standard input.",
  MINTMARK_OPERATOR_SIGNER: "In place of the key: `<address>=<url>` of a service that signs.",
  MINTMARK_RECEIPT_KEY: "The private key that signs receipts of mints; publish its address.",
  MINTMARK_RECEIPT_KEYSTORE: "In place of that key: an encrypted file of it.",
  MINTMARK_RECEIPT_PASSWORD_FILE: "File of its password; default as above.",
  MINTMARK_RECEIPT_SIGNER:
    "In place of that key: `<address>=<url>` of a service, for which each mint waits.",
  MINTMARK_FROM_BLOCK: "Deployment block of the contract.",
  MINTMARK_CONFIRMATIONS:
    "Blocks after which a block counts as final; default the chain's own finality.",
  MINTMARK_MEMBERS: "The committee in force, each member as `<address>=<url>`.",
  MINTMARK_THRESHOLD: "How many members must sign.",
  MINTMARK_OWN_MEMBER:
    "`yes`: the server is the committee's only member, with the operator's key and the folder `<store>-member`; docs/guides/solo.md.",
  MINTMARK_ISSUERS: "The issuers of tokens, each as `<address>=<url>` of its service.",
  MINTMARK_CONSENT_SECONDS: "How long a batch waits for its issuers.",
  MINTMARK_MIRRORS:
    'Mirrors on other chains, as JSON: `[{"chainId": "10", "contract": "0x…", "rpcUrl": "https://…", "fromBlock": "…"}]`; optional are `confirmations` and `maxFeePerGas`, and `members` and `threshold` of a committee of its own.',
  MINTMARK_SEAL_SECONDS: "Time from the first mint of an open batch to its seal.",
  MINTMARK_SEAL_SECONDS_ROLLUP: "The same for `zk-rollup`; default as above.",
  MINTMARK_SEAL_VAULTS: "Vaults at which a `validium` batch is sealed.",
  MINTMARK_SEAL_VAULTS_ROLLUP:
    "Vaults at which a `zk-rollup` batch in calldata is sealed. One in blobs takes up to 24576 elements.",
  MINTMARK_SEAL_BYTES_ROLLUP:
    "Bytes of data at which a `zk-rollup` batch in calldata is sealed; nodes accept no transaction above 131072.",
  MINTMARK_MAX_FEE_PER_GAS:
    "Most wei ever offered for a unit of gas; by default 64 times the first estimate.",
  MINTMARK_MAX_FEE_PER_BLOB_GAS:
    "The same for a unit of blob gas. While the blob fee is above it, a commit by blobs waits, and those behind it.",
  MINTMARK_ROLLUP_DATA:
    "Where vaults of `zk-rollup` go: `blobs`, `calldata` or `auto`, which is blobs on Ethereum, Sepolia, Hoodi, Gnosis, Chiado and local chains (1337, 31337, 31338) if the precompile 0x0a works there, calldata elsewhere.",
  MINTMARK_REPLACE_SECONDS:
    "Time after which an unmined transaction is sent again at a higher fee.",
  MINTMARK_SETTLE_SECONDS: "Time between reads of L1.",
  MINTMARK_MOST_UNCOMMITTED:
    "Uncommitted vaults above which mints are 503 `backpressure`, if there is an operator key.",
  MINTMARK_LEAST_BALANCE:
    "The operator's wei on the settlement chain below which `/readyz` is 503. A relay needs up to 12.5 M gas.",
  MINTMARK_MOST_LAG: "Blocks behind the settlement chain above which `/readyz` is 503.",
  MINTMARK_ENGINE_VERSION: "The settlement contract's version, where no RPC tells it at the start.",
  MINTMARK_HOST: "Address to listen on.",
  MINTMARK_PORT: "Port to listen on; 0 for any.",
  MINTMARK_ORIGIN:
    "The server's address for browsers, such as `https://mint.example`. Without it owners sign in over localhost only.",
  MINTMARK_HOSTS:
    "Further names for requests, or `*` for any, beside the origin's, `localhost`, addresses and names without a dot.",
  MINTMARK_EXPLORER_RPC:
    "An RPC for the explorer's visitors; it must accept requests from any origin.",
  MINTMARK_NEW_TOKENS:
    "Who creates tokens from the console: `admins` of applications (default in the sandbox) or only the `operator` (default elsewhere).",
  MINTMARK_OWNER_RELAY_VAULTS:
    "Vaults a day that each signed-in owner may withdraw or transfer at the operator's cost; 0 turns it off.",
  MINTMARK_FILLS_PER_DAY:
    "Fills of orders a day that the operator brings to L1 for each application.",
  MINTMARK_WEBHOOK_REACH:
    "Addresses that webhooks may reach; `public-and-loopback` only in a sandbox.",
  MINTMARK_METRICS_PORT: "Port of `GET /metrics`; default none.",
  MINTMARK_METRICS_HOST: "Address of that port.",
  MINTMARK_LOG_LEVEL: "pino's levels; secrets are never written.",
  MINTMARK_TOKEN_SECRET:
    "At least 32 bytes in hex, random by default; servers behind one address share it.",
  MINTMARK_JWKS:
    "Keys of the identity provider whose bearer tokens are accepted: an https address, or a file.",
  MINTMARK_JWT_ISSUER: "The identity provider's name, as in `iss`.",
  MINTMARK_JWT_AUDIENCE: "The required `aud` of its tokens.",
  MINTMARK_TRUSTED_PROXIES: "Addresses whose X-Forwarded-For is trusted.",
  MINTMARK_RATE_UNITS: "Units of a key in each window; docs/api.md lists the costs.",
  MINTMARK_RATE_WINDOW_SECONDS: "Length of the window.",
  MINTMARK_MEMORY_MIB: "MiB of request bodies and unread responses.",
  MINTMARK_CLOCK_AHEAD_HOURS: "Most time that the clock may be ahead of the journal.",
  MINTMARK_IDEMPOTENCY_HOURS: "Time for which an idempotency key returns its mint.",
  MINTMARK_REQUEST_TIMEOUT_SECONDS: "Timeout for receiving a whole request.",
  MINTMARK_DRAIN_SECONDS: "Time of answering 503 before the socket closes.",
  MINTMARK_SHUTDOWN_SECONDS: "Time after which busy connections are closed.",
};

export const ABOUT_DEPLOYMENT = {
  MINTMARK_RPC_URL: "The chain's RPC.",
  MINTMARK_ADMIN:
    "Schedules operators and committees; default the time lock, or the deployer without one.",
  MINTMARK_MULTISIG:
    "Instead of an admin: deploys a time lock as administrator, with this address as proposer and executor.",
  MINTMARK_GUARDIAN: "Pauses commits and revokes operators; default the deployer.",
  MINTMARK_OPERATOR: "Commits batches; a plain account; default the deployer.",
  MINTMARK_COMMITTEE: "The committee's addresses, separated by commas.",
  MINTMARK_THRESHOLD: "Signatures that a validium batch needs.",
  MINTMARK_CHANGE_DELAY: "Seconds before a new operator or committee is active; 604800 are 7 days.",
  MINTMARK_MATURITY: "Seconds that ERC-721 vaults wait after their commit; 86400 are a day.",
  MINTMARK_TRANSFERS:
    "no: a contract without transfers of vaults. Nobody can add or remove them later.",
  MINTMARK_ALLOW_NO_DELAY:
    "yes: allow a change delay of 0, or a maturity below the chain's finality and ten minutes, on a public chain too.",
  MINTMARK_DEPLOYMENTS: "Folder of the deployment records.",
  MINTMARK_TOKEN:
    'One token to deploy and register, as JSON: {"standard":"erc721","name":"Swords","symbol":"SWRD"}. Optional: "uri", "admin", "issuer" (who must consent to its mints), "lockMinter", "transferable" (true: owners can transfer its vaults, for ever; default false), "cap" and "quantum" (erc20), "mintingBlobScheme" ("mintmark" or "imx"), "royalty" (erc721, erc1155): {"receiver":"0x…","fraction":"250"}, in ten-thousandths of the price.',
  MINTMARK_MIRROR_RPC_URL:
    "Also deploys a mirror for tokens of this other chain; the same key pays there.",
  MINTMARK_MIRROR_ADMIN:
    "Schedules the mirror's committees; an account of that chain; default the deployer.",
  MINTMARK_MIRROR_COMMITTEE: "Its committee; default the settlement contract's.",
  MINTMARK_MIRROR_THRESHOLD:
    "Signatures that a state needs there; default the settlement contract's.",
  MINTMARK_MIRROR_TOKEN: "As the token above, deployed there and registered with both.",
};
