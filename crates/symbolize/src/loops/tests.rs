//! Functions as GCC 12 compiles them with `-O2`, and the shapes of their loops.

use stepscope_model::LoopShape::{self, Chain, Scan, Search, Spin, Visit};

use super::graph::Graph;
use super::{classify, is_question, no_waits};

fn graph(code: &str) -> Graph {
    let digit = |at: usize| u8::from_str_radix(&code[at..at + 2], 16).unwrap();
    let code: Vec<u8> = (0..code.len()).step_by(2).map(digit).collect();
    Graph::of(&code, 0x1000)
}

fn shapes(code: &str) -> Vec<LoopShape> {
    let graph = graph(code);
    let loops = graph.loops();
    loops.iter().filter_map(|one| classify(&graph, &loops, one)).map(|one| one.shape).collect()
}

#[rustfmt::skip]
const SHAPED: &[(&str, &[LoopShape], &str)] = &[
    ("find_stride", &[Search], "4889f84885f6742031c9eb110f1f40004883c1014883c0184839ce740b391075efc3660f1f44000031c0c3"),
    ("find_chain", &[Search], "eb0e660f1f4400003977207413488b3f4885ff75f331c0c30f1f8400000000004889f8c3"),
    ("find_pointer", &[Search], "488b4f084885c9741f488b3f31c0eb094883c0014839c8740f488b14c7393275efc3660f1f440000b8ffffffffc3"),
    ("find_text", &[Search], "85f67e414531d2660f1f8400000000000fb6074989f84889d184c07517eb4890410fb640014983c0014c8d490184c0741f4c89c9380174e84183c2014883c7184439d675cb41baffffffff4489d0c3900fb6410184c074f34183c2014883c7184439d675abebde0fb602ebe8"),
    ("find_float", &[Search], "85f67e244863f631c0eb0e0f1f4400004883c0014839f0740f660f2e04c77af075eec30f1f440000b8ffffffffc3"),
    ("scan_flags", &[Scan], "4885f674434883c710488d0476f20f101500000000660fefc9488d04c70f1f00f647fc047410f20f1007f20f59c2f20f58c8f20f11074883c7184839c775e1660f28c1c30f1f4000660fefc9660f28c1c3"),
    ("scan_call", &[Scan], "4885f6743b41544989fc554889f55331dbeb0e0f1f4400004883c3014839dd7419498b3cdc8b470c85c074ece8000000004883c3014839dd75e75b5d415cc390c3"),
    ("spin_flag", &[Spin], "8b0785c074fac3"),
    ("spin_lock", &[Spin, Spin], "ba010000000f1f0089d0870785c074108b0785c074f2f390ebf6660f1f440000c3"),
    ("spin_two", &[Spin], "488b074839d075070fb60684c074f1b801000000c3"),
    ("climb", &[Chain], "660fefc04885ff7427f20f100d000000000f1f8000000000f20f59c1f20f584728488b7f184885ff75eec30f1f440000c3"),
    ("climb_indices", &[Chain], "660f57c06666662e0f1f8400000000004839f2731648c1e206f20f58441710803c1700488b54170875e6c350488d05653504004889d74889c2ff15e1580400cc"),
    ("visit_all", &[Visit, Visit, Visit], "415666490f7ec6415541545553803f007456488b5f18488b6f284c8b6f304c8b6738660f1f4400004939dc742b488b3b4883c30866490f6ec6488b07ff50104839dd75e4498b5d084983c508488dab000200004939dc75d55b5d415c415d415ec30f1f8000000000488b6f60488b5f584839dd74e30f1f00488b3b4883c30866490f6ec6488b07ff50104839dd75e95b5d415c415d415ec3"),
    ("ask_pairs", &[Scan], "415741564c8d3565ffffff41554989fd41545531ed534883ec28c744241c00000000660f1f440000896c24084c8d3ced000000008d5d014d8d67080f1f44000041807d20007450498b7d008b74240889da488b07488b40104c39f00f85df000000e80affffff84c0742d498b4508f20f10155a0c0000f2420f100438f2420f5c042031c0660f5405240c0000660f2fd00f97c00144241c83c3014983c40881fbdc050000759a4883c5014881fddb0500000f8571ffffff4d8b6508498b5d1031ed4c39e37455660fefdb4d89e6f20f2addf20f115c2410660f1f840000000000f2410f100ef20f104424104983c608f20f58c1f20f114c2408e8a2fbfffff20f5905d20b0000f20f104c2408f20f58c1f2410f1146f84c39f375c583c50183fd28759e8b44241c4883c4285b5d415c415d415e415fc3662e0f1f840000000000ffd0e91fffffff660f1f840000000000"),
    ("each_component", &[Scan, Search], "488b8c24b000000031c04531e44c8d7c24640f1f840000000000488d0440498d14c6488b02488b52084839d07515eb49662e0f1f8400000000004883c0104839c2743680380275f2488b50084885d2742844896424644885c90f8476010000488dbc24a00000004c89feff9424b8000000488b8c24b0000000488b742410418d4424014989c44839f0728f4885c9c3"),
];

#[rustfmt::skip]
const OTHERS: &[(&str, &str)] = &[
    ("check_numbers", "85f67e2c4863f6488d04f7eb0c0f1f004883c7084839c77417f20f1007660f2ec07bed31c0c3662e0f1f840000000000b801000000c3"),
    ("lower_bound", "488b5710488d47080f1f8400000000004885d27416488b4a10488b7a18483b72207e0d4889fa4885d275ea4883c028c34889d04889caebd8"),
    ("sum_of", "85f67e1c4863f6660fefc0488d04f790f20f58074883c7084839c775f3c36690660fefc0c3"),
    ("least_of", "83fe017e2b89f6b80100000031d266904863ca8b0c8f390c870f4cd04883c0014839c675eb89d0c30f1f84000000000031d289d0c3"),
    ("pairs_of", "660f28e085f60f8e80000000488d4f1c660fefc0bf0100000083fe0174726690f20f1059f44889c889fa660f1f440000660f28cbf20f5c480c660f28d1f20f59d1660f2fd4772e660fefd2f20f58c1f30f5a51e8f20f58d1f20f5ad2f30f1151e8660fefd2f30f5a10f20f5cd1f20f5ad2f30f111083c2014883c01839d67fb083c7014883c11839fe7595c3660fefc0c3"),
    ("find_tree", "eb17660f1f440000397720741b488b4708480f4e47104889c74885ff75ea31c0c30f1f80000000004889f8c3"),
    ("find_hash", "89d021f089c18b0c8f39ca7511eb139083c00121f089c18b0c8f39d1740485c975eec3"),
    ("end_of_word", "4889f8f607df74110f1f8400000000004883c001f600df75f7c3"),
    ("insert_sorted", "4863c6488d0c87448b014889c885f67f12eb1b0f1f4400008910488d41fc83ee0174158b50fc4889c14439c27fea448901c3660f1f4400004889f9448901c3"),
    ("find_half", "4531c0eb140f1f0089f1d1f9418d040848983914877c1189ce85f67feb4489c0c30f1f800000000083c1014101c829ceebe7"),
    ("mandelbrot", "660fefd2f20f103d0000000031c0660f28ea660f28f2660f28daeb0b0f1f40003de8030000743d660f28e5f20f5cde83c001f20f58e4660f28ebf20f59d4f20f58e8660f28ddf20f59ddf20f58d1660f28f2f20f59f2660f28e3f20f58e6660f2ffc77bcc3"),
    ("visits", "4863c94863048f31ff85c078240f1f0048630c82498d0c88448b094585c97509c7010100000083c7014863048685c079df89f8c3"),
    ("count_of", "85f67e244863f631c0488d34b70f1f0031c939170f94c14883c70401c84839fe75eec30f1f44000031c0c3"),
    ("walk_write", "660fefc94885ff7429f20f1015000000000f1f8000000000f20f104728f20f59c2f20f114728488b3ff20f58c84885ff75e6660f28c1c3"),
];

#[test]
fn searches_scans_waits_and_chains_are_told_by_their_instructions() {
    for (name, expected, code) in SHAPED {
        assert_eq!(shapes(code), *expected, "{name}");
    }
}

#[test]
fn sums_minima_pairs_trees_hashes_texts_and_sorts_have_no_shape() {
    for (name, code) in OTHERS {
        assert_eq!(shapes(code), [], "{name}");
    }
}

#[test]
fn code_that_is_cut_off_or_none_has_no_loops() {
    for code in ["", "0f", "74fe", "ebfe", "ffe0", "75", "e9ffffffff", "f3"] {
        assert!(shapes(code).len() <= 1, "{code}");
    }
    let (_, _, whole) = SHAPED[0];
    for length in (0..whole.len()).step_by(2) {
        shapes(&whole[..length]);
    }
}

#[test]
fn a_call_may_wait_if_it_is_the_only_one_of_its_loop() {
    // again: call; test eax, eax; je again; ret
    let waits = graph("e80000000085c074f7c3");
    assert!(no_waits(&waits, &waits.loops()).is_empty());
    // again: call; call; test eax, eax; je again; ret
    let works = graph("e800000000e80000000085c074f2c3");
    assert_eq!(no_waits(&works, &works.loops()), [0x1005, 0x100a]);
    let once = graph("e800000000c3");
    assert_eq!(no_waits(&once, &once.loops()), [0x1005]);
}

#[test]
fn a_question_only_loads_and_compares() {
    let is_one = |code: &str| {
        let graph = graph(code);
        let loops = graph.loops();
        is_question(&graph, &loops)
    };
    // ret
    assert!(is_one("c3"));
    // mov rax, [rdi + 8]; mov edx, [rax + 4*rsi]; and edx, [rax + 4*rdx]; cmp edx, 1; sete al; ret
    assert!(is_one("488b47088b14b023149083fa010f94c0c3"));
    // mov [rdi], esi; ret
    assert!(!is_one("8937c3"), "a write");
    // addsd xmm0, xmm1; ret
    assert!(!is_one("f20f58c1c3"), "arithmetic");
    // call; ret
    assert!(!is_one("e800000000c3"));
    assert!(!is_one("8b0785c074fac3"), "a wait");
}
