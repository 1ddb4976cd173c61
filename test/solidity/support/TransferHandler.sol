// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Authorization, BatchHeader, BlobScheme, Mode, Standard, Transfer, Vault} from "../../../contracts/interfaces/Model.sol";
import {expect} from "./Expect.sol";
import {NaiveTree} from "./NaiveTree.sol";
import {Settlement} from "./Settlement.sol";
import {deploy, vm} from "./Vm.sol";

/// @dev Owners, receivers, sessions, and an operator with the committee on its side, who commits records of any kind. The
/// model is an eager ledger: a record moves its vault when it is committed, or never. Whatever happens later, L1 must pay
/// each vault to the account that the ledger names, and to nobody else.
contract TransferHandler is Settlement {
    struct Group {
        Transfer[] items;
        uint32 deadline;
        /// @dev The key that signs; 0 for a signature of nobody.
        uint256 key;
        /// @dev Without a signature.
        bool approved;
        bytes signature;
    }

    struct Held {
        address owner;
        uint64 first;
        uint64 rest;
        uint256 place;
        bool moved;
        bool exists;
        uint256 depth;
    }

    struct Session {
        uint256 from;
        uint256 until;
        uint256 revokedAt;
        uint64 limit;
        uint256 assetType;
        bool used;
    }

    uint32 private constant FOREVER = type(uint32).max;
    uint256 private constant FIRST_SESSION_KEY = 601;
    uint256 private constant MAX_IDS = 48;

    /// @dev Only the test asks about everybody.
    address private immutable _test = msg.sender;
    address[3] private _tokens;
    mapping(uint64 vaultId => Held) private _held;
    /// @dev Minted vaults, and all that records claim to have made.
    uint64[] private _ids;
    /// @dev Records with their proofs, as the contract takes them.
    mapping(uint64 outId => bytes) private _making;
    /// @dev One more than the id.
    mapping(uint64 outId => uint64) private _inOf;
    mapping(uint64 inId => bytes) private _spending;
    mapping(uint64 inId => bool) private _spent;
    mapping(uint256 place => bool) private _voided;
    mapping(bytes32 token => bool) private _minted;
    mapping(address owner => mapping(address key => Session)) private _known;
    mapping(address owner => mapping(bytes32 digest => uint256)) private _approved;
    mapping(address account => mapping(bytes32 digest => uint256)) private _cancelled;
    bytes private _pending;
    bool private _probing;

    uint256 public moves;
    uint256 public bySession;
    uint256 public byApproval;
    uint256 public transferredExits;
    uint256 public refutations;
    uint256 public voids;

    constructor() {
        vm.warp(1_800_000_000);
        for (uint256 kind; kind < 3; ++kind) {
            // The same issuer as the tokens that the harness brings.
            address issuer = kind == 0 ? address(0) : vm.addr(ISSUER_KEY);
            bytes memory arguments = abi.encode(standards[kind], 0, state, issuer);
            _tokens[kind] = deploy("contracts/test/TransferableToken.sol/TransferableToken", arguments);
            assetTypes[kind] =
                state.registerAsset(standards[kind], uint64(block.chainid), _tokens[kind], 1, BlobScheme.Mintmark);
        }
    }

    // ---- What anyone may do

    function mint(uint256 seed, uint256 count, bool asRollup) external {
        Mode mode = asRollup ? Mode.ZkRollup : Mode.Validium;
        Vault[] memory vaults = vaultsFrom(mode, seed, 1 + count % 3);
        for (uint256 i; i < vaults.length; ++i) vaults[i].amount = 1 + (vaults[i].amount - 1) % 9;
        uint256 first = places.length;
        if (asRollup) commitRollup(vaults);
        else commitValidium(vaults);
        for (uint256 i; i < vaults.length; ++i) {
            Vault memory vault = vaults[i];
            _held[vault.vaultId] = Held(vault.owner, vault.amount, vault.amount, first + i, false, true, 0);
            _ids.push(vault.vaultId);
        }
    }

    function transfer(uint256 seed, uint256 more) external {
        Group[] memory groups = new Group[](1 + more % 2);
        for (uint256 i; i < groups.length; ++i) groups[i] = _groupFrom(uint256(keccak256(abi.encode(seed, i))));
        _commit(groups);
    }

    /// @dev An owner's record, as honest people make them, so that chains grow.
    function give(uint256 which, uint256 to, uint64 amount) external {
        if (_ids.length == 0) return;
        uint64 id = _ids[which % _ids.length];
        if (_spent[id] || !_isActor(_held[id].owner)) return;
        Group[] memory groups = new Group[](1);
        Transfer[] memory items = new Transfer[](1);
        items[0] = Transfer(id, amount % 3 == 0 ? amount % 9 : 0, vm.addr(ownerKey(to)));
        groups[0] = Group(items, FOREVER, keyOf(_held[id].owner), false, "");
        _commit(groups);
    }

    function approve(uint256 seed, uint256 who) external {
        Group memory group = _groupFrom(seed);
        group.approved = true;
        address owner = _held[group.items[0].vaultId].owner;
        if (!_isActor(owner) || who % 4 == 0) owner = vm.addr(ownerKey(who));
        bytes32 digest = _digestOf(group);
        vm.prank(owner);
        state.approveTransfers(group.items, group.deadline);
        if (_approved[owner][digest] == 0) _approved[owner][digest] = block.timestamp;
        _pending = abi.encode(group);
    }

    function commitApproved() external {
        if (_pending.length == 0) return;
        Group[] memory groups = new Group[](1);
        groups[0] = abi.decode(_pending, (Group));
        _commit(groups);
    }

    /// @dev A list that is committed later, or was already.
    function cancel(uint256 seed, uint256 who) external {
        Group memory group = who % 2 == 0 && _pending.length != 0 ? abi.decode(_pending, (Group)) : _groupFrom(seed);
        address account = group.key != 0 ? vm.addr(group.key) : _held[group.items[0].vaultId].owner;
        if (account == address(0) || who % 8 == 1) account = vm.addr(ownerKey(who));
        bytes32 digest = _digestOf(group);
        vm.prank(account);
        state.cancelTransfers(digest);
        if (_cancelled[account][digest] == 0) _cancelled[account][digest] = block.timestamp;
        _pending = abi.encode(group);
    }

    function authorizeSession(uint256 who, uint256 key, uint256 time, uint64 limit, uint256 asset) external {
        address owner = vm.addr(ownerKey(who));
        address signer = _sessionKey(key);
        Session storage known = _known[owner][signer];
        uint64 until = uint64(block.timestamp + 1 + time % MATURITY);
        limit = 1 + limit % 9;
        asset = asset % 4 == 3 ? 0 : assetTypes[asset % 4 % 3];
        if (asset % 2 == 0) asset = 0;
        vm.prank(owner);
        try state.authorizeSession(owner, signer, until, limit, asset, "") {
            expect(!known.used, "a session's key was used twice");
            _known[owner][signer] = Session(block.timestamp, until, 0, limit, asset, true);
        } catch {
            expect(known.used, "a session is refused");
        }
    }

    function revokeSession(uint256 who, uint256 key) external {
        address owner = vm.addr(ownerKey(who));
        Session storage known = _known[owner][_sessionKey(key)];
        address signer = _sessionKey(key);
        if (key % 2 == 0) {
            bytes32 message = keccak256(abi.encode(keccak256("SessionEnd(address owner,address key)"), owner, signer));
            state.revokeSession(owner, signer, sign(ownerKey(who), typedDigest(message)));
        } else {
            vm.prank(owner);
            state.revokeSession(owner, signer, "");
        }
        if (known.revokedAt == 0) known.revokedAt = block.timestamp;
        known.used = true;
    }

    function wait(uint256 time) external {
        vm.warp(block.timestamp + time % (2 * MATURITY));
    }

    function voidDuplicate(uint256 first, uint256 second) external {
        if (places.length == 0) return;
        (first, second) = (first % places.length, second % places.length);
        Place memory a = places[first];
        Place memory b = places[second];
        bool same = standardOf(a.vault) == Standard.ERC721 && standardOf(b.vault) == Standard.ERC721
            && keccak256(a.vault.blob) == keccak256(b.vault.blob);
        Held storage later = _held[b.vault.vaultId];
        bool allowed = first < second && same && !_voided[second] && (later.moved || later.rest != 0);
        try state.voidDuplicate(a.vault, batches[a.batch].header, a.path, b.vault, batches[b.batch].header, b.path) {
            expect(allowed, "voided a vault that is no duplicate");
            _voided[second] = true;
            ++voids;
        } catch {
            expect(!allowed, "a duplicate is not voided");
        }
    }

    /// @dev A vault, or what a record claims to have made, asked for by any owner, with or without the refutation.
    function withdraw(uint256 which, uint256 who, uint64 quantity, bool refutes) external {
        if (_ids.length == 0) return;
        uint64 id = _ids[which % _ids.length];
        Held storage held = _held[id];
        address caller = who % 2 == 0 && _isActor(held.owner) ? held.owner : vm.addr(ownerKey(who));
        if (quantity % 4 != 0 && held.rest != 0) quantity = 1 + quantity % held.rest;
        bool allowed = _canExit(id) && caller == held.owner && quantity != 0 && quantity <= held.rest && (refutes || !_spent[id]);
        bool paid = _withdraw(id, caller, quantity, refutes);
        expect(paid == allowed, allowed ? "the owner is refused" : "somebody else is paid");
        if (!paid) return;
        held.rest -= quantity;
        if (_inOf[id] != 0) ++transferredExits;
        if (_spent[id]) ++refutations;
        Vault storage vault = places[held.place].vault;
        if (standardOf(vault) == Standard.ERC721) _minted[keccak256(vault.blob)] = true;
    }

    // ---- What must hold after every sequence

    /// @dev Of each vault and each owner: the contract pays exactly the one whom the ledger names. The calls are undone.
    function checkEverybody() external {
        if (msg.sender != _test) return;
        _probing = true;
        uint256 begin = _ids.length > MAX_IDS ? _ids.length - MAX_IDS : 0;
        for (uint256 i = begin; i < _ids.length; ++i) {
            uint64 id = _ids[i];
            Held storage held = _held[id];
            expect(state.isSpent(id) == _spent[id], "a bit is not that of the commits");
            for (uint256 k; k < OWNERS; ++k) {
                address owner = vm.addr(301 + k);
                bool allowed = _canExit(id) && held.owner == owner;
                try this.probe(id, owner, held.rest == 0 ? 1 : held.rest) {
                    expect(false, "a probe ends without an answer");
                } catch (bytes memory answer) {
                    bool paid = answer.length == 32 && abi.decode(answer, (bool));
                    expect(paid == allowed, allowed ? "the owner is refused in the end" : "somebody else is paid in the end");
                }
            }
        }
        _probing = false;
    }

    /// @notice Reverts with the answer, so that nothing of the call remains. The runner can call it too, from any address.
    function probe(uint64 id, address caller, uint64 quantity) external {
        if (!_probing) return;
        bool paid = _withdraw(id, caller, quantity, true);
        assembly ("memory-safe") {
            mstore(0x00, paid)
            revert(0x00, 0x20)
        }
    }

    // ---- Inside

    function _withdraw(uint64 id, address caller, uint64 quantity, bool refutes) private returns (bool paid) {
        uint256 depth;
        uint64 origin = id;
        for (; _inOf[origin] != 0; origin = _inOf[origin] - 1) ++depth;
        // Records of a vault that nobody minted.
        if (!_held[origin].exists) return false;
        bytes memory hops;
        for (uint64 made = id; depth != 0; made = _inOf[made] - 1) {
            hops = abi.encodePacked(_making[made], hops);
            --depth;
        }
        bytes memory refutation;
        if (refutes && _spent[id]) refutation = _spending[id];
        Place memory place = places[_held[origin].place];
        bytes memory call = abi.encodeCall(
            state.withdrawTransferred,
            (place.vault, batches[place.batch].header, place.path, hops, refutation, quantity, caller, Authorization(0, ""))
        );
        vm.prank(caller);
        (paid,) = address(state).call(call);
    }

    function _canExit(uint64 id) private view returns (bool) {
        Held storage held = _held[id];
        if (!held.exists || held.moved || held.rest == 0 || held.owner == address(0)) return false;
        Vault storage vault = places[held.place].vault;
        if (standardOf(vault) != Standard.ERC721) return true;
        bool mature = block.timestamp >= batches[places[held.place].batch].header.committedAt + MATURITY;
        return mature && !_voided[held.place] && !_minted[keccak256(vault.blob)];
    }

    function _groupFrom(uint256 seed) private view returns (Group memory group) {
        group.items = new Transfer[](1 + seed % 2);
        for (uint256 i; i < group.items.length; ++i) {
            uint256 random = uint256(keccak256(abi.encode(seed, "item", i)));
            uint64 id = _ids.length == 0 || random % 8 == 0
                ? (1 << 63) | (uint64((random >> 8) % 24) << 20)
                : _ids[(random >> 8) % _ids.length];
            uint64 amount = (random >> 64) % 2 == 0 ? 0 : uint64((random >> 72) % 10);
            address to = (random >> 80) % 8 == 0 ? address(0) : vm.addr(ownerKey(random >> 88));
            group.items[i] = Transfer(id, amount, to);
        }
        seed = uint256(keccak256(abi.encode(seed, "group")));
        group.deadline = seed % 8 == 0 ? uint32(block.timestamp - seed % 2) : FOREVER;
        address owner = _held[group.items[0].vaultId].owner;
        uint256 how = (seed >> 8) % 8;
        group.approved = how == 7;
        if (how < 4 && _isActor(owner)) group.key = keyOf(owner);
        else if (how == 4) group.key = ownerKey(seed >> 16);
        else if (how == 5 || how == 6) group.key = FIRST_SESSION_KEY + (seed >> 16) % 2;
    }

    /// @dev Commits what L1 takes, and expects it to refuse the rest.
    function _commit(Group[] memory groups) private {
        bool refused;
        for (uint256 i; i < groups.length; ++i) {
            for (uint256 j; j < groups[i].items.length; ++j) {
                uint64 id = groups[i].items[j].vaultId;
                refused = refused || _spent[id] || _occursBefore(groups, i, j, id);
                refused = refused || (id >> 20) & 0xffffffff >= nextNumber(Mode(id >> 63));
            }
            refused = refused || groups[i].deadline < block.timestamp;
            _sign(groups[i]);
        }
        uint64 number = nextNumber(Mode.ZkRollup);
        bytes32[] memory leaves = _leavesOf(groups, (1 << 63) | (number << 20));
        bytes memory data = _encode(groups);
        bytes32 content = NaiveTree.root(leaves, NaiveTree.heightOf(leaves.length));
        bytes32 root = keccak256(abi.encodePacked(uint8(6), uint8(3), bytes32(0), content));
        bytes memory attestation = _attest(number, root, uint32(leaves.length), keccak256(data));
        bytes32 history = state.history();
        vm.prank(operator, operator);
        try state.commitTransferBatch(history, number, data, attestation) {
            expect(!refused, "a vault was spent twice or too early, or behind a deadline");
        } catch {
            expect(refused, "a transfer batch is refused");
            return;
        }
        BatchHeader memory header =
            BatchHeader(root, uint32(leaves.length), uint64(block.timestamp), uint64(batches.length));
        batches.push(Batch(Mode.ZkRollup, header, state.batchHeaderHash(Mode.ZkRollup, number)));
        stateLeaves[Mode.ZkRollup].push(
            keccak256(abi.encodePacked(uint8(2), number, header.vaultCount, keccak256(data), header.batchRoot))
        );
        _book(groups, leaves, header, (1 << 63) | (number << 20));
    }

    function _book(Group[] memory groups, bytes32[] memory leaves, BatchHeader memory header, uint64 outId) private {
        uint256 height = NaiveTree.heightOf(leaves.length);
        uint256 known = _ids.length;
        uint256 slot;
        for (uint256 i; i < groups.length; ++i) {
            Group memory group = groups[i];
            bytes32 list = _listOf(group);
            for (uint256 j; j < group.items.length; ++j) {
                Transfer memory item = group.items[j];
                bool moved = _moves(item, group);
                _spent[item.vaultId] = true;
                for (uint8 part; part < (item.amount == 0 ? 1 : 2); ++part) {
                    bytes32[] memory siblings = NaiveTree.siblings(leaves, height, slot++);
                    bytes memory hop = _hopOf(outId, part, item, group, list, header, siblings);
                    _making[outId] = hop;
                    _spending[item.vaultId] = hop;
                    _inOf[outId] = item.vaultId + 1;
                    if (moved) _hold(outId, part, item);
                    _ids.push(outId++);
                }
                if (moved) (_held[item.vaultId].moved, moves) = (true, moves + 1);
            }
        }
        expect(_ids.length - known == header.vaultCount, "a slot too many or too few");
    }

    function _hold(uint64 outId, uint8 part, Transfer memory item) private {
        Held storage held = _held[item.vaultId];
        uint64 paid = item.amount == 0 ? held.rest : item.amount;
        (address owner, uint64 amount) = part == 0 ? (item.to, paid) : (held.owner, held.rest - paid);
        _held[outId] = Held(owner, amount, amount, held.place, false, true, held.depth + 1);
    }

    /// @dev Whether the record moves the vault, at its commit, now.
    function _moves(Transfer memory item, Group memory group) private returns (bool) {
        Held storage held = _held[item.vaultId];
        if (!held.exists || held.rest == 0 || held.owner == address(0)) return false;
        if (_voided[held.place] || held.depth == 8) return false;
        Vault storage vault = places[held.place].vault;
        if (item.amount != 0 && (standardOf(vault) == Standard.ERC721 || item.amount >= held.rest)) return false;
        if (_isCancelled(held.owner, group)) return false;
        if (!group.approved && group.key != 0 && vm.addr(group.key) == held.owner) return true;
        uint256 approvedAt = _approved[held.owner][_digestOf(group)];
        if (approvedAt != 0 && approvedAt < block.timestamp) {
            ++byApproval;
            return true;
        }
        if (group.approved || group.key == 0 || _isCancelled(vm.addr(group.key), group)) return false;
        Session storage known = _known[held.owner][vm.addr(group.key)];
        if (known.from == 0 || known.from >= block.timestamp || known.until < block.timestamp) return false;
        if (known.revokedAt != 0 && known.revokedAt < block.timestamp) return false;
        if (known.assetType != 0 && known.assetType != vault.assetType) return false;
        if ((item.amount == 0 ? held.first : item.amount) > known.limit) return false;
        ++bySession;
        return true;
    }

    function _isCancelled(address account, Group memory group) private view returns (bool) {
        uint256 cancelledAt = _cancelled[account][_digestOf(group)];
        return cancelledAt != 0 && cancelledAt < block.timestamp;
    }

    function _hopOf(
        uint64 outId,
        uint8 part,
        Transfer memory item,
        Group memory group,
        bytes32 list,
        BatchHeader memory header,
        bytes32[] memory siblings
    ) private pure returns (bytes memory) {
        bytes memory record = abi.encodePacked(outId, part, item.amount, item.to, group.deadline, list, _signedOf(group));
        return abi.encodePacked(
            record,
            header.batchRoot,
            header.vaultCount,
            header.committedAt,
            header.sequence,
            uint8(siblings.length),
            siblings
        );
    }

    /// @dev Zeros stand for no signature.
    function _signedOf(Group memory group) private pure returns (bytes memory) {
        return group.approved ? abi.encodePacked(bytes32(0), bytes32(0)) : group.signature;
    }

    function _sign(Group memory group) private view {
        if (group.approved) group.signature = "";
        else if (group.key == 0) group.signature = abi.encodePacked(bytes32(uint256(1)), bytes32(uint256(2)));
        else group.signature = compact(sign(group.key, _digestOf(group)));
    }

    function _occursBefore(Group[] memory groups, uint256 group, uint256 item, uint64 id) private pure returns (bool found) {
        for (uint256 i; i <= group; ++i) {
            uint256 end = i == group ? item : groups[i].items.length;
            for (uint256 j; j < end; ++j) found = found || groups[i].items[j].vaultId == id;
        }
    }

    function _isActor(address account) private pure returns (bool found) {
        for (uint256 i; i < OWNERS; ++i) found = found || vm.addr(301 + i) == account;
    }

    function _sessionKey(uint256 seed) private pure returns (address) {
        return vm.addr(FIRST_SESSION_KEY + seed % 2);
    }

    // ---- The format of docs/protocol.md 10, in its plainest form; one record with a base

    function _encode(Group[] memory groups) private pure returns (bytes memory data) {
        data = hex"03";
        for (uint256 i; i < groups.length; ++i) {
            Group memory group = groups[i];
            bool amounts;
            for (uint256 j; j < group.items.length; ++j) amounts = amounts || group.items[j].amount != 0;
            uint8 form = (amounts ? 1 : 0) + (group.approved ? 2 : 0);
            bool single = group.items.length == 1;
            data = abi.encodePacked(data, form + (single ? 8 : 20), group.deadline);
            uint64 first = group.items[0].vaultId;
            if (single) data = abi.encodePacked(data, first - (first & 0xff), group.signature, uint24(first & 0xff));
            else data = abi.encodePacked(data, uint16(group.items.length), group.signature);
            for (uint256 j; j < group.items.length; ++j) {
                Transfer memory item = group.items[j];
                if (!single) data = abi.encodePacked(data, item.vaultId);
                data = abi.encodePacked(data, item.to);
                if (amounts) data = abi.encodePacked(data, item.amount);
            }
        }
    }

    function _leavesOf(Group[] memory groups, uint64 outId) private pure returns (bytes32[] memory leaves) {
        uint256 count;
        leaves = new bytes32[](8);
        for (uint256 i; i < groups.length; ++i) {
            bytes32 auth = keccak256(abi.encodePacked(groups[i].deadline, _listOf(groups[i]), _signedOf(groups[i])));
            for (uint256 j; j < groups[i].items.length; ++j) {
                for (uint8 part; part < (groups[i].items[j].amount == 0 ? 1 : 2); ++part) {
                    leaves[count++] = keccak256(abi.encodePacked(uint8(8), outId++, part, _hashOf(groups[i].items[j]), auth));
                }
            }
        }
        assembly ("memory-safe") {
            mstore(leaves, count)
        }
    }

    function _hashOf(Transfer memory item) private pure returns (bytes32) {
        bytes32 typehash = keccak256("Transfer(uint64 vaultId,uint64 amount,address to)");
        return keccak256(abi.encode(typehash, item.vaultId, item.amount, item.to));
    }

    function _listOf(Group memory group) private pure returns (bytes32) {
        bytes memory hashes;
        for (uint256 i; i < group.items.length; ++i) hashes = abi.encodePacked(hashes, _hashOf(group.items[i]));
        return keccak256(hashes);
    }

    function _digestOf(Group memory group) private view returns (bytes32) {
        bytes32 typehash = keccak256(
            "Transfers(Transfer[] transfers,uint64 deadline)Transfer(uint64 vaultId,uint64 amount,address to)"
        );
        return typedDigest(keccak256(abi.encode(typehash, _listOf(group), uint64(group.deadline))));
    }

    function _attest(uint64 number, bytes32 root, uint32 count, bytes32 dataHash) private view returns (bytes memory) {
        (, uint64 epoch) = state.committee();
        bytes32 typehash =
            keccak256("TransferBatch(bytes32 history,uint64 batchNumber,bytes32 batchRoot,uint32 vaultCount,bytes32 dataHash,uint64 epoch)");
        bytes memory message = abi.encode(typehash, state.history(), number, root, count, dataHash, epoch);
        return attest(typedDigest(keccak256(message)), THRESHOLD);
    }
}
