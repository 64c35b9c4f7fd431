//! Meshes of shapes, and the index lists that physics needs.

use std::collections::HashMap;
use std::f32::consts::TAU;

use crate::account;

/// A point, m.
pub type Vertex = [f32; 3];

/// How vertices are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VertexSearch {
    /// In a list, one after the other.
    List,
    /// In a map by value.
    Dictionary,
}

/// A closed surface of triangles.
#[derive(Debug, Clone)]
pub struct Mesh {
    vertices: Vec<Vertex>,
    triangles: Vec<[Vertex; 3]>,
}

/// Vertices around the tube of a ring.
const AROUND: u32 = 32;

impl Mesh {
    /// A ring with about this many vertices: rounds of 32, at least 3. The kind sets the thickness.
    pub fn ring(vertices: u32, kind: u32) -> Self {
        let rounds = (vertices / AROUND).max(3);
        let thickness = 0.1 + 0.02 * kind as f32;
        let point = |round: u32, place: u32| {
            let (along, across) = (round as f32 / rounds as f32 * TAU, place as f32 / AROUND as f32 * TAU);
            let radius = 0.5 + thickness * across.cos();
            [radius * along.cos(), radius * along.sin(), thickness * across.sin()]
        };
        let places = || (0..rounds).flat_map(|round| (0..AROUND).map(move |place| (round, place)));
        let vertices: Vec<Vertex> = places().map(|(round, place)| point(round, place)).collect();
        let at = |round: u32, place: u32| vertices[(round % rounds * AROUND + place % AROUND) as usize];
        let triangles = places().flat_map(|(round, place)| {
            let corners = [at(round, place), at(round + 1, place), at(round + 1, place + 1), at(round, place + 1)];
            [[corners[0], corners[1], corners[2]], [corners[0], corners[2], corners[3]]]
        });
        Self { triangles: triangles.collect(), vertices }
    }

    /// The vertices in order.
    pub fn vertices(&self) -> &[Vertex] {
        &self.vertices
    }

    /// Three vertex indices for each triangle.
    #[inline(never)]
    pub fn get_index_list(&self, search: VertexSearch) -> Vec<u32> {
        let _timed = account::scope("ground::region::mesh::Mesh::get_index_list");
        let corners = self.triangles.iter().flatten();
        match search {
            VertexSearch::List => corners.map(|vertex| self.index_of(vertex)).collect(),
            VertexSearch::Dictionary => {
                let places: HashMap<_, _> =
                    (0..).zip(&self.vertices).map(|(index, vertex)| (bits(vertex), index)).collect();
                corners.map(|vertex| places[&bits(vertex)]).collect()
            }
        }
    }

    #[inline(never)]
    fn index_of(&self, wanted: &Vertex) -> u32 {
        for (index, vertex) in (0..).zip(&self.vertices) {
            if vertex == wanted {
                return index;
            }
        }
        unreachable!("triangles are made of the mesh's vertices")
    }
}

fn bits(vertex: &Vertex) -> [u32; 3] {
    vertex.map(f32::to_bits)
}

/// Volume within a closed surface, m³: the sum of the signed tetrahedra from the origin to each triangle.
pub fn volume(vertices: &[Vertex], indices: &[u32]) -> f32 {
    let corners = indices.chunks_exact(3).map(|corners| [0, 1, 2].map(|i| vertices[corners[i] as usize]));
    let tetrahedron = |[a, b, c]: [Vertex; 3]| {
        let cross = [b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2], b[0] * c[1] - b[1] * c[0]];
        (a[0] * cross[0] + a[1] * cross[1] + a[2] * cross[2]) / 6.0
    };
    corners.map(tetrahedron).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_searches_give_the_same_indices_of_the_same_vertices() {
        let mesh = Mesh::ring(96, 0);
        let listed = mesh.get_index_list(VertexSearch::List);
        assert_eq!(listed, mesh.get_index_list(VertexSearch::Dictionary));
        assert_eq!((mesh.vertices().len(), listed.len()), (96, 96 * 2 * 3));
        let corner = |index: usize| mesh.vertices()[listed[index] as usize];
        assert!((0..listed.len()).all(|index| corner(index) == mesh.triangles[index / 3][index % 3]));
    }

    #[test]
    fn the_volume_of_a_ring_is_close_to_that_of_the_torus_it_approximates() {
        let mesh = Mesh::ring(4096, 0);
        let volume = volume(mesh.vertices(), &mesh.get_index_list(VertexSearch::Dictionary));
        // 2 pi² R r², R = 0.5 and r = 0.1.
        let torus = 0.098_696;
        assert!((volume.abs() / torus - 1.0).abs() < 0.01, "{volume}");
    }
}
