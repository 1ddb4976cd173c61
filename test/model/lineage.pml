/*
 * Vaults of ERC-721 ids on L1: commit, void, mature, transfer, withdraw, enter, settle, renew.
 *
 * Two honest owners, two ids, and Eve: the operator, who also holds vaults, commits batches whose
 * data nobody else sees, and writes records that nobody signed. Each action is one transaction.
 * `-DNO_RULE` removes one rule, and the model then has a trace that breaks an assertion.
 *
 * What must hold after each transaction:
 *   exit     what an honest owner can withdraw stays so, but by the owner's own act, by a duplicate
 *            in a batch that was hidden, or by a token whose minter is not locked
 *   lineage  once an id has entered, at most one vault of it pays, and none while L1 has the token
 *   fresh    what an honest owner receives for an exitable vault is exitable
 *   seen     a signed transfer moves the token that its owner saw
 *   token    an honest owner's token on L1 moves by the owner's act alone
 */
#define IDS 2
#ifndef VAULTS
#define VAULTS 5
#endif
#define KEYS 24
/* How many batch vaults the operator commits. */
#ifndef COMMITS
#define COMMITS 2
#endif

#define NOBODY 0
#define ALICE 1
#define BOB 2
#define EVE 3
#define HONEST(who) (who == ALICE || who == BOB)

typedef Vault {
  byte id;
  byte owner;
  /* Commit's number of a batch vault, making's number of a made one, 0 of a transfer's output. */
  byte number;
  /* Word in which L1 keeps what was withdrawn. */
  byte key;
  /* Minted, entered, settled or renewed vault at which the chain of transfers begins. */
  byte origin;
  bit made;
  bit mature;
  /* L1's bit: some record names the vault. */
  bit spent;
  /* That record counts. */
  bit counted;
  bit voided;
  /* Descends from a batch that was hidden, even if its data came later. */
  bit withheld;
  /* Watchers have its batch's data. */
  bit shown;
  /* Could its owner withdraw it after the transaction before. */
  bit was;
  /* The present transaction may end that. */
  bit consented;
}

Vault v[VAULTS];
bit gone[KEYS];
byte used;
byte commits;
byte makings;
/* Makings that no reorganisation changes any more. */
byte finals;
/* Number of the id's latest entry; 0 before the first. */
byte entry[IDS];
/* Who has the token on L1. */
byte holder[IDS];
/* The token has one minter for ever. */
bit locked;
/* A record that names the next making has set its bit. */
bit planted;
/* A signed transfer of a made vault, which names the vault by its number. */
byte signedNumber;
byte signedId;
/* How many actions of a kind are left; they bound the model. */
byte unsignedLeft = 1;
byte transfersLeft = 2;

#ifdef NO_LINEAGE
#define IN_LINEAGE(i) true
#else
#ifdef NO_ORIGIN
#define IN_LINEAGE(i) (entry[v[i].id] == 0 || (v[i].made && v[i].number >= entry[v[i].id]))
#else
#define IN_LINEAGE(i) (entry[v[i].id] == 0 || \
  (v[v[i].origin].made && v[v[i].origin].number >= entry[v[i].id]))
#endif
#endif

#ifdef NO_REFUTATION
#define IS_SPENT(i) (v[i].spent)
#else
#define IS_SPENT(i) (v[i].spent && v[i].counted)
#endif

/* Nothing has taken the vault, but it may be immature or of an ended lineage. */
#define UNTAKEN(i) (i < used && !gone[v[i].key] && !v[v[i].origin].voided && !IS_SPENT(i))
#define PAYABLE(i) (UNTAKEN(i) && v[v[i].origin].mature && IN_LINEAGE(i))
/* The token's own contract refuses an id that L1 has. */
#define EXITABLE(i) (PAYABLE(i) && holder[v[i].id] == NOBODY)

#ifdef NO_SETTLE_LINEAGE
#define LINEAGE_OF_INPUT(i) true
#else
#define LINEAGE_OF_INPUT(i) IN_LINEAGE(i)
#endif
#ifdef NO_SETTLE_MATURITY
#define SETTLEABLE(i) (UNTAKEN(i) && LINEAGE_OF_INPUT(i))
#else
#define SETTLEABLE(i) (UNTAKEN(i) && v[v[i].origin].mature && LINEAGE_OF_INPUT(i))
#endif
#ifdef NO_RENEW_MATURITY
#define RENEWABLE(i) (UNTAKEN(i) && LINEAGE_OF_INPUT(i))
#else
#define RENEWABLE(i) (UNTAKEN(i) && v[v[i].origin].mature && LINEAGE_OF_INPUT(i))
#endif

#ifdef NO_KEY_BIT
#define MADE_KEY(number, slot) (number)
#else
#define MADE_KEY(number, slot) (8 + 2 * number + slot)
#endif

#ifdef NO_VOID_OF_BATCHES_ONLY
#define VOIDABLE(i) true
#else
#define VOIDABLE(i) (!v[i].made)
#endif

#ifdef NO_FINALITY
#define SIGNABLE(i) true
#else
#define SIGNABLE(i) (v[i].number <= finals)
#endif

#ifdef NO_MINTER_LOCK
#define ENTERABLE true
#else
#define ENTERABLE locked
#endif

/* Scratch of one transaction. */
byte x, y, z, who, payables, flag;

/* Adds a vault; its fields beyond these are zero. */
inline add(ofId, ofOwner) {
  x = used;
  v[x].id = ofId;
  v[x].owner = ofOwner;
  v[x].origin = x;
  used++
}

/* Adds the vault of a slot of the newest making. */
inline addMade(ofId, ofOwner, slot, tainted) {
  add(ofId, ofOwner);
  v[x].made = 1;
  v[x].mature = 1;
  v[x].number = makings;
  v[x].key = MADE_KEY(makings, slot);
  v[x].withheld = tainted;
  /* A vault whose bit was planted ahead cannot be withdrawn plainly. */
  v[x].spent = planted;
  assert(!planted)
}

/* What must hold after each transaction; then the next one is compared with this state. */
inline check() {
  z = 0;
  do
  :: z < used ->
    assert(!HONEST(v[z].owner) || !v[z].was || v[z].consented || EXITABLE(z));
    v[z].was = EXITABLE(z);
    v[z].consented = 0;
    z++
  :: else -> break
  od;
  y = 0;
  do
  :: y < IDS ->
    payables = 0;
    z = 0;
    do
    :: z < used ->
      payables = payables + (v[z].id == y && PAYABLE(z));
      z++
    :: else -> break
    od;
    assert(entry[y] == 0 || payables + (holder[y] != NOBODY) <= 1);
    y++
  :: else -> break
  od;
  x = 0;
  y = 0;
  z = 0;
  who = 0;
  payables = 0;
  flag = 0
}

/* Vaults of an id that never entered may lose against a duplicate from a hidden batch. */
inline excuseDuplicates(ofId, tainted) {
  z = 0;
  do
  :: z < used ->
    if
    :: v[z].id == ofId && entry[ofId] == 0 && (tainted || v[z].withheld) -> v[z].consented = 1
    :: else -> skip
    fi;
    z++
  :: else -> break
  od
}

/* The operator commits a mint: of any id, to anybody, with data that it shows or hides. */
inline commit(ofId, to, withheld_) {
  d_step {
    used < VAULTS && commits < COMMITS;
    commits++;
    add(ofId, to);
    v[x].number = commits;
    v[x].key = commits;
    v[x].withheld = withheld_;
    v[x].shown = !withheld_;
    check()
  }
}

/* Watchers have voided each later duplicate whose data they see before it matures. */
#define VISIBLE_BEFORE(i, j) (j < i && v[j].number > 0 && !v[j].made && v[j].id == v[i].id && \
  !v[j].voided && v[j].shown && v[i].shown)

inline ripen(i) {
  d_step {
    i < used && !v[i].made && v[i].number > 0 && !v[i].mature && !v[i].voided &&
      !VISIBLE_BEFORE(i, 0) && !VISIBLE_BEFORE(i, 1) && !VISIBLE_BEFORE(i, 2) &&
      !VISIBLE_BEFORE(i, 3);
    v[i].mature = 1;
    check()
  }
}

/* Anybody proves that two vaults have one id; the later one is void. */
inline annul(i, j) {
  d_step {
    i < used && j < i && v[i].id == v[j].id && v[i].origin == i && v[j].origin == j &&
      !v[i].voided && !v[j].voided && VOIDABLE(i) && VOIDABLE(j);
    z = 0;
    do
    :: z < used ->
      v[z].consented = v[z].consented ||
        (v[z].origin == i && (v[i].withheld || v[j].withheld));
      z++
    :: else -> break
    od;
    v[i].voided = 1;
    v[i].shown = 1;
    v[j].shown = 1;
    check()
  }
}

/* The output of a record that counts. */
inline output(i, to) {
  flag = EXITABLE(i);
  v[i].spent = 1;
  v[i].counted = !gone[v[i].key] && !v[v[i].origin].voided && IN_LINEAGE(i);
  v[i].consented = 1;
  if
  :: v[i].counted ->
    add(v[i].id, to);
    v[x].key = 4 + x;
    v[x].origin = v[i].origin;
    v[x].withheld = v[i].withheld;
    /* fresh */
    assert(!flag || EXITABLE(x))
  :: else -> skip
  fi
}

/* The owner signs, and the operator commits the record. Made vaults have a message of their own. */
inline transfer(i) {
  d_step {
    transfersLeft > 0 && used < VAULTS && i < used && !v[i].spent && !gone[v[i].key] && !v[i].made;
    transfersLeft--;
    output(i, BOB);
    check()
  }
}

/* An honest owner signs a transfer of a made vault, by its number. */
inline sign(i) {
  d_step {
    signedNumber == 0 && transfersLeft > 0 && i < used && v[i].made && HONEST(v[i].owner) &&
      v[i].key == MADE_KEY(v[i].number, 0) && EXITABLE(i) && SIGNABLE(i);
    transfersLeft--;
    signedNumber = v[i].number;
    signedId = v[i].id
  }
}

/* The operator commits the record of that message. */
inline commitSigned(i) {
  d_step {
    used < VAULTS && i < used && v[i].made && signedNumber != 0 && v[i].number == signedNumber &&
      v[i].key == MADE_KEY(v[i].number, 0) && HONEST(v[i].owner) && !v[i].spent;
    /* seen */
    assert(v[i].id == signedId);
    signedNumber = 0;
    signedId = 0;
    output(i, ALICE);
    check()
  }
}

/* The operator and too many members commit a record that nobody signed. */
inline commitUnsigned(i) {
  d_step {
    unsignedLeft > 0 && i < used && !v[i].spent;
    unsignedLeft--;
    v[i].spent = 1;
    v[i].counted = 0;
    check()
  }
}

inline withdraw(i) {
  d_step {
    i < used && EXITABLE(i);
    v[i].consented = 1;
    excuseDuplicates(v[i].id, v[i].withheld);
    gone[v[i].key] = 1;
    holder[v[i].id] = v[i].owner;
    check()
  }
}

/* Somebody who may mint the token beside the settlement contract does. */
inline mintOnL1(ofId, to) {
  d_step {
    !locked && holder[ofId] == NOBODY;
    excuseDuplicates(ofId, 1);
    holder[ofId] = to;
    check()
  }
}

/* The holder burns the token and gets a vault. */
inline enter(ofId) {
  d_step {
    used < VAULTS && makings < 3 && holder[ofId] != NOBODY && ENTERABLE;
    who = holder[ofId];
    holder[ofId] = NOBODY;
    makings++;
    entry[ofId] = makings;
    addMade(ofId, who, 0, 0);
    /* fresh */
    assert(EXITABLE(x));
    check()
  }
}

/* Two owners have signed orders for each other's vault, and anybody settles them. */
inline settle(i, j) {
  d_step {
    used + 2 <= VAULTS && i < used && j < used && makings < 3 && v[i].id == 0 && v[j].id == 1 &&
      v[i].owner != v[j].owner && SETTLEABLE(i) && SETTLEABLE(j);
    flag = EXITABLE(i) && EXITABLE(j);
    v[i].consented = 1;
    v[j].consented = 1;
    gone[v[i].key] = 1;
    gone[v[j].key] = 1;
    makings++;
    addMade(0, v[j].owner, 0, v[i].withheld);
    assert(!flag || EXITABLE(x));
#ifdef NO_WHOLE_TRADE
    /* fresh: the other half failed by itself */
    assert(!HONEST(v[i].owner) || !flag);
#else
    addMade(1, v[i].owner, 1, v[j].withheld);
    assert(!flag || EXITABLE(x));
#endif
    check()
  }
}

inline renew(i) {
  d_step {
    used < VAULTS && i < used && makings < 3 && RENEWABLE(i);
    flag = EXITABLE(i);
    v[i].consented = 1;
    gone[v[i].key] = 1;
    makings++;
    addMade(v[i].id, v[i].owner, 0, v[i].withheld);
    assert(!flag || EXITABLE(x));
    check()
  }
}

#define NEWEST_ENTRY(i, n) (i < used && v[i].made && v[i].number == n && entry[v[i].id] == n && \
  !v[i].spent && !gone[v[i].key])

/* L1 reorganises: two entries of one owner, the newest makings, come in the other order. */
inline reorganise(i, j) {
  d_step {
    makings >= finals + 2 && NEWEST_ENTRY(i, makings - 1) && NEWEST_ENTRY(j, makings) &&
      v[i].owner == v[j].owner;
    v[i].number = makings;
    v[i].key = MADE_KEY(makings, 0);
    entry[v[i].id] = makings;
    v[j].number = makings - 1;
    v[j].key = MADE_KEY((makings - 1), 0);
    entry[v[j].id] = makings - 1;
    check()
  }
}

active proctype l1() {
  do
  :: commit(0, ALICE, 0)
  :: commit(0, ALICE, 1)
  :: commit(1, ALICE, 0)
  :: commit(1, ALICE, 1)
  :: commit(0, EVE, 0)
  :: commit(0, EVE, 1)
  :: commit(1, EVE, 0)
  :: commit(1, EVE, 1)
  :: ripen(0)
  :: ripen(1)
  :: ripen(2)
  :: ripen(3)
  :: ripen(4)
  :: transfer(0)
  :: transfer(1)
  :: transfer(2)
  :: transfer(3)
  :: transfer(4)
  :: sign(0)
  :: sign(1)
  :: sign(2)
  :: sign(3)
  :: sign(4)
  :: commitSigned(0)
  :: commitSigned(1)
  :: commitSigned(2)
  :: commitSigned(3)
  :: commitSigned(4)
  :: commitUnsigned(0)
  :: commitUnsigned(1)
  :: commitUnsigned(2)
  :: commitUnsigned(3)
  :: commitUnsigned(4)
  :: withdraw(0)
  :: withdraw(1)
  :: withdraw(2)
  :: withdraw(3)
  :: withdraw(4)
  :: renew(0)
  :: renew(1)
  :: renew(2)
  :: renew(3)
  :: renew(4)
  :: annul(1, 0)
  :: annul(2, 0)
  :: annul(2, 1)
  :: annul(3, 0)
  :: annul(3, 1)
  :: annul(3, 2)
  :: annul(4, 0)
  :: annul(4, 1)
  :: annul(4, 2)
  :: annul(4, 3)
  :: settle(0, 1)
  :: settle(0, 2)
  :: settle(0, 3)
  :: settle(0, 4)
  :: settle(1, 0)
  :: settle(1, 2)
  :: settle(1, 3)
  :: settle(1, 4)
  :: settle(2, 0)
  :: settle(2, 1)
  :: settle(2, 3)
  :: settle(2, 4)
  :: settle(3, 0)
  :: settle(3, 1)
  :: settle(3, 2)
  :: settle(3, 4)
  :: settle(4, 0)
  :: settle(4, 1)
  :: settle(4, 2)
  :: settle(4, 3)
  :: reorganise(0, 1)
  :: reorganise(0, 2)
  :: reorganise(0, 3)
  :: reorganise(0, 4)
  :: reorganise(1, 0)
  :: reorganise(1, 2)
  :: reorganise(1, 3)
  :: reorganise(1, 4)
  :: reorganise(2, 0)
  :: reorganise(2, 1)
  :: reorganise(2, 3)
  :: reorganise(2, 4)
  :: reorganise(3, 0)
  :: reorganise(3, 1)
  :: reorganise(3, 2)
  :: reorganise(3, 4)
  :: reorganise(4, 0)
  :: reorganise(4, 1)
  :: reorganise(4, 2)
  :: reorganise(4, 3)
  :: enter(0)
  :: enter(1)
  :: mintOnL1(0, ALICE)
  :: mintOnL1(0, EVE)
  :: mintOnL1(1, ALICE)
  :: d_step { !locked; locked = 1 }
  :: d_step { finals < makings; finals++ }
#ifdef NO_KNOWN_MAKING
  /* A record names a vault of a making that L1 does not have yet. */
  :: d_step { unsignedLeft > 0; unsignedLeft--; planted = 1 }
#endif
#ifdef NO_CALLER
  /* Eve enters what somebody else holds. */
  :: d_step {
      used < VAULTS && holder[0] != NOBODY && locked;
      /* token */
      assert(!HONEST(holder[0]));
      holder[0] = NOBODY;
      makings++;
      entry[0] = makings;
      addMade(0, EVE, 0, 0);
      check()
    }
#endif
  od
}
