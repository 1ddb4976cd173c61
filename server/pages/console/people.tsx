import { useState } from "preact/hooks";
import type {
  AuditEntry,
  Invitation,
  NewPersonSignIn,
  Person,
  PersonSignIn,
} from "../../client/index.ts";
import { type Provider, signChallenge, WalletButtons, wallets } from "../shared/wallets.tsx";
import { call } from "./api.ts";
import * as ui from "./parts.tsx";

const ROLES = {
  viewer: "viewer: looks",
  developer: "developer: mints, keys, webhooks",
  admin: "admin: everything, people too",
} as const;

export function Team({
  signIn,
  application,
}: {
  signIn: PersonSignIn;
  application: string | null;
}) {
  const [invited, show] = useState<Invitation | null>(null);
  const canManage = signIn.rights.includes("people");
  const roles = application === null ? { operator: "operator" } : ROLES;
  const invite = async (person: ui.Texts) => show(await call("POST", "/console/v1/people", person));
  const link = async ({ personId }: Person) =>
    show(await call("POST", `/console/v1/people/${personId}/links`));
  const remove = ({ personId }: Person) => call("DELETE", `/console/v1/people/${personId}`);
  const change = ({ personId }: Person, role: string) =>
    call("PUT", `/console/v1/people/${personId}/role`, { role });
  const columns: ui.Column<Person>[] = [
    [
      "Name",
      (person) => <span class={person.removedAt === null ? "" : "gone"}>{person.name}</span>,
    ],
    ["Role", ({ role }) => role],
    ["Wallet", ({ address }) => <ui.Id of={address} />],
    ["Last sign-in", ({ signedInAt }) => <ui.When at={signedInAt} />],
    ui.actions((person) => {
      if (!canManage || person.removedAt !== null || person.personId === signIn.person.personId)
        return [];
      const others = Object.keys(roles).filter((role) => role !== person.role);
      return [
        ...others.map((role) => [`Make ${role}`, () => change(person, role)] as const),
        ["New link", () => link(person)],
        ["Remove", () => remove(person), `Remove ${person.name}? Their sign-ins end at once.`],
      ];
    }),
  ];
  return (
    <>
      {invited?.link && (
        <ui.Secret
          title={`Link for ${invited.person.name}. It signs in once, within a week.`}
          secret={`${location.origin}/console#link=${invited.link}`}
          onDone={() => show(null)}
        />
      )}
      {canManage && (
        <ui.Form label="New person" action="Invite" send={invite}>
          <ui.Input label="Name" name="name" required maxLength={100} />
          <ui.Select label="Role" name="role" options={roles} />
          <ui.Input label="Wallet (empty: by link)" name="address" {...ui.ADDRESS} />
        </ui.Form>
      )}
      <ui.List idIn="personId" label="People" path="/console/v1/people" columns={columns} />
      <OwnWallet signIn={signIn} />
    </>
  );
}

function OwnWallet({ signIn: { person } }: { signIn: PersonSignIn }) {
  const [address, setAddress] = useState(person.address);
  const use = async (provider: Provider) => {
    const proof = await signChallenge(provider, "console");
    setAddress((await call<Person>("PUT", "/console/v1/sign-in/wallet", proof)).address);
  };
  return (
    <>
      <h2>Your wallet</h2>
      <p class="quiet">
        {address === null
          ? "You sign in by links. Set a wallet to sign in by yourself."
          : `You sign in with ${address}.`}
      </p>
      <p class="actions">
        {wallets().map(({ name, provider }) => (
          <ui.Action key={name} text={`Use ${name} from now on`} work={() => use(provider)} />
        ))}
      </p>
    </>
  );
}

const ACTIONS: Readonly<Record<string, string>> = {
  acted: "did",
  applicationChanged: "changed the default mode of",
  applicationCreated: "created the application",
  applicationSuspended: "suspended or resumed",
  assetAdded: "added or changed the asset",
  assetChanged: "changed the asset",
  assetEnabled: "enabled or disabled the asset",
  assetRemoved: "removed the asset",
  assetWhitelisted: "whitelisted or unlisted the asset",
  claimCancelled: "cancelled the claim link",
  claimsCreated: "created claim links",
  collectionChanged: "changed, hid, revealed or froze the metadata of",
  keyIssued: "created the key",
  keyRevoked: "revoked the key",
  personAddressed: "set the wallet of",
  personChanged: "changed the role of",
  personInvited: "invited",
  personLinked: "made a link for",
  personRemoved: "removed",
  metadataFrozen: "froze metadata of",
  metadataSet: "set metadata of",
  mint: "minted",
  personSignedOut: "signed out",
  personSignedIn: "signed in",
  userCreated: "created the user",
  webhookCreated: "added the webhook",
  webhookDeleted: "deleted the webhook",
  webhookChanged: "changed the events of the webhook",
  webhookEventSkipped: "skipped an event of the webhook",
  webhookEnabled: "enabled the webhook",
  webhookSecretRotated: "gave a new secret to the webhook",
  webhookSecretRotatedOnce: "gave a new secret to the webhook",
  withdrawalRequested: "requested the withdrawal",
};

const ENTRIES: readonly ui.Column<AuditEntry>[] = [
  ["When", ({ time }) => <ui.When at={time} />],
  ["Who", ({ personName }) => personName ?? "the operator's command line"],
  [
    "Did what",
    ({ action, count }) =>
      `${ACTIONS[action] ?? action}${count > 1 && action !== "mint" ? ` (${count.toLocaleString("en")} times)` : ""}`,
  ],
  ["To", ({ action, detail }) => (action.startsWith("personSigned") ? "" : (detail ?? ""))],
  ["Id", ({ action, subject }) => <Subject action={action} id={subject} />],
];

const PAGES: Readonly<Record<string, (id: string) => string>> = {
  mint: (id) => `transactions?mintId=${id}`,
  userCreated: (id) => `users/${id}`,
  withdrawalRequested: (id) => `transactions/${id}`,
};

function Subject({ action, id }: { action: string; id: string | null }) {
  const page = PAGES[action];
  const shown = <ui.Id of={id} />;
  return page === undefined || id === null ? shown : <a href={`#/${page(id)}`}>{shown}</a>;
}

export function Audit() {
  return <ui.List label="Audit log" path="/console/v1/audit" columns={ENTRIES} />;
}

/**
 * The secret of an invitation's link; null without one. It leaves the address at once, so that no
 * history keeps it.
 */
export function takeLink(): string | null {
  const link = /^#link=([0-9a-f]{96})$/.exec(location.hash)?.[1] ?? null;
  if (link !== null) history.replaceState(null, "", `${location.pathname}#/`);
  return link;
}

/**
 * @param link - waits for a click: programs that look into mails open links too, and each works
 * once
 */
export function SignIn({
  link,
  onSignedIn,
}: {
  link: string | null;
  onSignedIn: (signIn: NewPersonSignIn) => void;
}) {
  const { busy, error, run } = ui.useAction();
  const [several, setSeveral] = useState<{
    readonly opened: NewPersonSignIn;
    readonly wallet: Provider;
  } | null>(null);
  const [isSpent, setSpent] = useState(false);
  const open = (proof: object) => call<NewPersonSignIn>("POST", "/console/v1/sign-in", proof);
  const spend = (error: { readonly code?: string }) => {
    setSpent(/^credentials_/.test(error.code ?? ""));
    throw error;
  };
  const byLink = async () => onSignedIn(await open({ link }).catch(spend));
  const byWallet = (wallet: Provider, applicationId?: Person["applicationId"]) =>
    run(async () => {
      const opened = await open({ ...(await signChallenge(wallet, "console")), applicationId });
      if (applicationId !== undefined || opened.others.length === 0) onSignedIn(opened);
      else setSeveral({ opened, wallet });
    });
  const choose = ({ opened, wallet }: NonNullable<typeof several>, { applicationId }: Person) =>
    applicationId === opened.person.applicationId
      ? onSignedIn(opened)
      : byWallet(wallet, applicationId);
  if (several !== null) {
    return (
      <main id="main" tabIndex={-1}>
        <ui.Title lead="This wallet belongs to several teams. Another team than the first asks for one more signature.">
          Choose a team
        </ui.Title>
        {error && <ui.Failure error={error} />}
        {[several.opened.person, ...several.opened.others].map((person) => (
          <p key={person.personId}>
            <button type="button" disabled={busy} onClick={() => void choose(several, person)}>
              <bdi>{person.applicationName ?? "The operator"}</bdi>, as <bdi>{person.name}</bdi> (
              {person.role})
            </button>
          </p>
        ))}
      </main>
    );
  }

  return (
    <main id="main" tabIndex={-1}>
      <ui.Title lead="For the team of an application, and for the operator. An admin or the operator invites you.">
        Sign in to the console
      </ui.Title>
      {error && <ui.Failure error={error} />}
      {link !== null && !isSpent && (
        <p>
          <ui.Button
            main
            disabled={busy}
            onClick={() => void run(byLink)}
            text="Sign in with this link"
          />
        </p>
      )}
      <WalletButtons
        main
        verb="Sign in with"
        disabled={busy}
        onChoose={({ provider }) => byWallet(provider)}
      />
      <p class="quiet">
        {wallets().length === 0 && "This browser has no wallet. "}
        Open your invitation's link to sign in without a wallet: each link works once. In the
        console you can then set the wallet that signs you in from now on.
      </p>
    </main>
  );
}
